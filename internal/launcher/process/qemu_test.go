package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheMessagesOfQEMUAreWithoutThoseOfLibvirt(t *testing.T) {
	p := filepath.Join(t.TempDir(), "log")
	for log, want := range map[string]string{
		"2026-11-20 18:02:39.950+0000: starting up libvirt version: 9.0.0\nLC_ALL=C \\\n/usr/bin/qemu \\\n-msg timestamp=on\n2026-11-20 18:02:39.950+0000: shutting down, reason=crashed\n": "",
		"/usr/bin/qemu \\\n-msg timestamp=on\nqemu: no memory\ndouble free\n2026: shutting down, reason=crashed\n":                                                                          "qemu: no memory; double free",
		strings.Repeat("old\n", 5000) + "a\nb\r\nc\nd": "a; b; c; d",
	} {
		require.NoError(t, os.WriteFile(p, []byte(log), 0o600))
		require.Equal(t, want, lastLines(p))
	}
	require.Empty(t, lastLines(p+"x"))
}

func TestTheProcessOfQEMUIsInItsFile(t *testing.T) {
	d := &Daemon{config: Config{Dir: t.TempDir()}}
	_, err := d.QEMU("ns_vm")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.MkdirAll(d.folder("run/libvirt/qemu/run"), 0o700))
	require.NoError(t, os.WriteFile(d.folder("run/libvirt/qemu/run/ns_vm.pid"), []byte("42\n"), 0o600))
	pid, err := d.QEMU("ns_vm")
	require.NoError(t, err)
	require.Equal(t, 42, pid)
}

// Whatever runs in the pod can put there what it likes. A launcher that waits for it neither
// sees a QEMU that a signal has stopped nor ends.
func TestAttackAFileOfQEMUIsNotWaitedForOrFollowed(t *testing.T) {
	d := NewDaemon(Config{Dir: t.TempDir()})
	outside := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(outside, []byte("42\n"), 0o600))
	for name, put := range map[string]func(path string) error{
		"FIFO":        func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link":        func(path string) error { return os.Symlink(outside, path) },
		"folder":      func(path string) error { return os.Mkdir(path, 0o700) },
		"large file":  func(path string) error { return os.WriteFile(path, make([]byte, 64<<20), 0o600) },
		"endless one": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			pid := d.folder("run/libvirt/qemu/run/" + name + ".pid")
			for _, path := range []string{pid, d.logOf(name)} {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, put(path))
			}
			_, err := d.QEMU(name)
			require.Error(t, err)
			_, err = d.QEMUStopped(name)
			require.Error(t, err)
			require.Empty(t, d.QEMUReason(name))
			require.LessOrEqual(t, len(d.QEMUMessages(name)), 4<<10)
		})
	}
}
