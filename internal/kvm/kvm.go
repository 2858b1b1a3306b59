package kvm

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
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
// what the kernel says below proc and sysfs (usually /proc and /sys): that the
// processors virtualize, and that the part of KVM that makes use of it is there,
// which it is only if the firmware allows it.
func Usable(path, proc, sysfs string) (usable bool, why string) {
	switch err := Probe(path); {
	case err == nil:
		return true, "a guest ran on it"
	case errors.Is(err, ErrUnusable):
		return false, err.Error()
	default:
		usable, why = evidence(proc, sysfs)
		return usable, why + "; it could not be tried: " + err.Error()
	}
}

// drivers are the parts of KVM that run guests on the processors themselves, on x86.
var drivers = []string{"kvm_intel", "kvm_amd"}

func evidence(proc, sysfs string) (usable bool, why string) {
	if runtime.GOARCH == "arm64" {
		return armEvidence(sysfs)
	}
	f, err := os.Open(filepath.Join(proc, "cpuinfo"))
	if err != nil {
		return false, err.Error()
	}
	defer f.Close()
	able, err := Virtualizes(f)
	if err != nil {
		return false, err.Error()
	}
	if !able {
		return false, "the processors do not virtualize"
	}
	for _, d := range drivers {
		if _, err := os.Stat(filepath.Join(sysfs, "module", d)); err == nil {
			return true, "the processors virtualize and " + d + " uses them"
		}
	}
	return false, "the processors virtualize, but no driver uses them"
}

// armEvidence is what the kernel says on ARM: it has the device only if the processors
// virtualize and their firmware lets the kernel use that.
func armEvidence(sysfs string) (usable bool, why string) {
	if _, err := os.Stat(filepath.Join(sysfs, "class", "misc", "kvm")); err != nil {
		return false, "the kernel has no KVM: " + err.Error()
	}
	return true, "the kernel has KVM"
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
