package kvm

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// ErrUnusable is wrapped by errors that say that KVM is there and runs no
// guest.
var ErrUnusable = errors.New("KVM runs no guest")

// timeLimit is how long the guest may take. It needs microseconds.
const timeLimit = 2 * time.Second

// Probe runs a small guest on the KVM device at path. The error wraps
// [ErrUnusable] if the guest does not run as it must, and is another if that
// could not be found out, for example because the device may not be opened.
func Probe(path string) error { return probe(path, code, timeLimit) }

// Usable says whether guests can run on the device at path, and why: because a
// guest ran on it or did not, or, where the device cannot be tried, because of
// what the processors say in the file cpuinfo (usually /proc/cpuinfo).
func Usable(path, cpuinfo string) (usable bool, why string) {
	switch err := Probe(path); {
	case err == nil:
		return true, "a guest ran on it"
	case errors.Is(err, ErrUnusable):
		return false, err.Error()
	default:
		why = "it cannot be tried (" + err.Error() + ")"
	}
	f, err := os.Open(cpuinfo)
	if err != nil {
		return false, why + ", and " + err.Error()
	}
	defer f.Close()
	switch able, err := Virtualizes(f); {
	case err != nil:
		return false, why + ", and " + err.Error()
	case able:
		return true, why + ", but the processors virtualize"
	default:
		return false, why + ", and the processors do not virtualize"
	}
}

// Virtualizes says whether the processors can run guests by themselves, by what
// the kernel says of them in the text of /proc/cpuinfo.
func Virtualizes(cpuinfo io.Reader) (bool, error) {
	lines := bufio.NewScanner(cpuinfo)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(name) != "flags" {
			continue
		}
		flags := strings.Fields(value)
		return slices.Contains(flags, "vmx") || slices.Contains(flags, "svm"), nil
	}
	return false, lines.Err()
}
