package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Ended says how a process ended, for people: what follows its name in a sentence.
func Ended(s unix.WaitStatus) string {
	switch {
	case s.Signaled() && s.Signal() == unix.SIGKILL:
		return "was killed by signal 9 (killed), as the kernel does when the memory of a pod is used up"
	case s.Signaled():
		return fmt.Sprintf("was killed by signal %d (%s)", s.Signal(), s.Signal())
	default:
		return fmt.Sprintf("ended with exit code %d", s.ExitStatus())
	}
}
