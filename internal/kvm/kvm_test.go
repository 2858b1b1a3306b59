package kvm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

const device = "/dev/kvm"

// say is a guest that says the answer and does nothing else.
var say = []byte{
	0xb8, 0x32, 0x4d, 0x56, 0x50, // mov $0x50564d32,%eax
	0xba, 0x10, 0x00, 0x00, 0x00, // mov $0x10,%edx
	0xef, // out %eax,(%dx)
}

func TestGuests(t *testing.T) {
	if _, err := os.Stat(device); err != nil {
		err := Probe(device)
		require.ErrorIs(t, err, os.ErrNotExist, "a node without KVM says so")
		require.NotErrorIs(t, err, ErrUnusable)
		return
	}
	testenv.Device(t, device)
	tests := []struct {
		name  string
		code  []byte
		limit time.Duration
		want  string
	}{
		{"a guest that writes the answer is accepted", say, timeLimit, ""},
		{"a guest that stops is not", []byte{0xf4}, timeLimit, "computed wrongly"},
		{"a guest that says something else is not", append([]byte{0xb8, 1, 0, 0, 0}, say[5:]...), timeLimit, "computed 0x1 instead of"},
		{"a guest that never ends is stopped", []byte{0xeb, 0xfe}, 50 * time.Millisecond, "did not end in 50ms"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := probe(device, tt.code, tt.limit)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrUnusable)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestProbeIsNotBetterThanTheProcessors(t *testing.T) {
	f, err := os.Open("/proc/cpuinfo")
	require.NoError(t, err)
	defer f.Close()
	able, err := Virtualizes(f)
	require.NoError(t, err)
	if !able {
		require.Error(t, Probe(device), "a KVM that makes virtual machines and interprets their instructions is of no use")
	}
}

func TestADeviceThatCannotBeTriedIsJudgedByTheProcessors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, flags, module string
		want                bool
		why                 string
	}{
		{"processors and driver", "vmx", "kvm_intel", true, "the processors virtualize and kvm_intel uses them"},
		{"processors that the firmware keeps from it", "svm", "kvm", false, "but no driver uses them"},
		{"no such processors", "fpu", "kvm_pvm", false, "the processors do not virtualize"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			proc, sysfs := t.TempDir(), t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(proc, "cpuinfo"), []byte("flags : "+tt.flags+"\n"), 0o644))
			require.NoError(t, os.MkdirAll(filepath.Join(sysfs, "module", tt.module), 0o755))
			got, why := Usable("/nosuch", proc, sysfs)
			require.Equal(t, tt.want, got)
			require.Contains(t, why, tt.why)
			require.Contains(t, why, "open /nosuch: no such file or directory")
		})
	}
	_, why := Usable("/nosuch", "/nosuch", "/sys")
	require.Contains(t, why, "open /nosuch/cpuinfo")
}

func TestVirtualizes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       bool
	}{
		{"Intel", "processor\t: 0\nflags\t\t: fpu vmx sse\n", true},
		{"AMD", "flags : fpu svm\n", true},
		{"a virtual machine without nested virtualization", "flags : fpu hypervisor vmxoff\n", false},
		{"nothing", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Virtualizes(strings.NewReader(tt.text))
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestARMSaysByItsDeviceThatItVirtualizes(t *testing.T) {
	sysfs := t.TempDir()
	usable, why := armEvidence(sysfs)
	require.False(t, usable)
	require.Contains(t, why, "the kernel has no KVM")
	require.NoError(t, os.MkdirAll(filepath.Join(sysfs, "class/misc/kvm"), 0o755))
	usable, _ = armEvidence(sysfs)
	require.True(t, usable)
}
