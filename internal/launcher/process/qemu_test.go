package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
