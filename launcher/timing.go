package launcher

import "time"

const (
	// AskAgain is how long a guest is given to react before it is asked once more
	// to power off: some miss a request that comes before their drivers are up.
	AskAgain = 2 * time.Second
	// Trial is how long a guest that the launcher resumed by itself must run before
	// it is reported to run.
	Trial = time.Second
	// ResumeFirst is how long a guest stays paused by an I/O error before the first
	// attempt to resume it, and ResumeLatest before any later one. An error after a
	// run as long as ResumeLatest is a new one.
	ResumeFirst  = 10 * time.Second
	ResumeLatest = 3 * time.Minute
	// SessionDelay is how long the libvirt daemon may not answer before that is a
	// finding. Making its record of what QEMU can do takes several seconds.
	SessionDelay = 10 * time.Second
	// BootDelay is how long a guest may run before it counts as one that does not
	// boot, if it has read less than BootedBytes of its disks. BootAgain is the time
	// between two looks at one that does not.
	BootDelay = 30 * time.Second
	BootAgain = 10 * time.Second
	// SilentDelay is how long a guest may run before it is named as one that has never
	// written to its serial console. An emulated guest with a quiet boot takes a minute.
	SilentDelay = 2 * time.Minute
)

// Backoff is how long to wait after the given number of attempts failed, at the start or
// at an [Operation].
func Backoff(failures int) time.Duration { return doubled(time.Second, failures, 30*time.Second) }

// ResumeBackoff is how long to wait before the given attempt to resume a guest
// that an I/O error paused. Attempts count from 1.
func ResumeBackoff(attempt int) time.Duration { return doubled(ResumeFirst, attempt, ResumeLatest) }

// doubled is first for n of 1 and below, twice as much for each more, and most at
// most.
func doubled(first time.Duration, n int, most time.Duration) time.Duration {
	wait := first
	for range n - 1 {
		if wait *= 2; wait >= most {
			return most
		}
	}
	return wait
}
