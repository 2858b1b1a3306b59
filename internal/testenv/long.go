package testenv

import "os"

// Long says whether sweeps and attacks are to be whole, as make test-attacks has them, or bounded.
func Long() bool { return os.Getenv("ATTACKS") == "long" }

// Seeds is how many of the seeds of a sweep are tried: a quarter, or all of them if it is [Long].
func Seeds(all uint64) uint64 {
	if Long() {
		return all
	}
	return all / 4
}
