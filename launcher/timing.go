package launcher

import "time"

const (
	// askAgain is how long a guest is given to react before it is asked once more
	// to power off: some miss a request that comes before their drivers are up.
	askAgain = 2 * time.Second
	// Trial is how long a guest that the launcher resumed by itself must run before
	// it is reported to run.
	Trial = time.Second
	// ResumeFirst is how long a guest stays paused by an I/O error before the first
	// attempt to resume it, and resumeLatest before any later one. An error after a
	// run as long as resumeLatest is a new one.
	ResumeFirst  = 10 * time.Second
	resumeLatest = 3 * time.Minute
	// sessionDelay is how long the libvirt daemon may not answer before that is a
	// finding. Making its record of what QEMU can do takes several seconds.
	sessionDelay = 10 * time.Second
	// BootDelay is how long a guest may run before it counts as one that does not
	// boot, if it has read less than BootedBytes of its disks. bootAgain is the time
	// between two looks at one that does not.
	BootDelay = 30 * time.Second
	bootAgain = 10 * time.Second
	// silentDelay is how long a guest may run before it is named as one that has never
	// written to its serial console. An emulated guest with a quiet boot takes a minute.
	silentDelay = 2 * time.Minute
)

// Backoff is how long to wait after the given number of attempts failed, at the start or
// at an [Operation].
func Backoff(failures int) time.Duration { return doubled(time.Second, failures, 30*time.Second) }

// resumeBackoff is how long to wait before the given attempt to resume a guest
// that an I/O error paused. Attempts count from 1.
func resumeBackoff(attempt int) time.Duration { return doubled(ResumeFirst, attempt, resumeLatest) }

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
