package ops_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/podvisor/podvisor/internal/ops"
)

func TestALineThatRepeatsTheLastIsDropped(t *testing.T) {
	var out bytes.Buffer
	l := ops.WithoutRepeats(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	lease := l.With("lock", "kubevirt/virt-controller")
	for range 3 {
		lease.Debug("lease is held", "holder", "a")
		lease.Debug("failed to acquire lease")
	}
	lease.Debug("lease is held", "holder", "b")
	lease.Debug("lease is held", "holder", "a")
	l.With("lock", "other").Debug("lease is held", "holder", "a")
	l.WithGroup("g").Debug("lease is held", "holder", "a")
	for range 2 {
		l.Info("what is no detail is kept")
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		got = append(got, rest)
	}
	require.Equal(t, []string{
		`level=DEBUG msg="lease is held" lock=kubevirt/virt-controller holder=a`,
		`level=DEBUG msg="failed to acquire lease" lock=kubevirt/virt-controller`,
		`level=DEBUG msg="lease is held" lock=kubevirt/virt-controller holder=b`,
		`level=DEBUG msg="lease is held" lock=kubevirt/virt-controller holder=a`,
		`level=DEBUG msg="lease is held" lock=other holder=a`,
		`level=DEBUG msg="lease is held" g.holder=a`,
		`level=INFO msg="what is no detail is kept"`,
		`level=INFO msg="what is no detail is kept"`,
	}, got)
}

// client-go names the lock of a lease in each line at verbosity 4.
func TestTheLinesOfClientGoPassThroughIt(t *testing.T) {
	var out bytes.Buffer
	l := ops.WithoutRepeats(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	klog.SetSlogLogger(l)
	defer klog.ClearLogger()
	for range 3 {
		klog.Background().V(4).Info("Lease is held by and has not yet expired", "lock", "kubevirt/virt-controller", "holder", "a")
	}
	require.Equal(t, 1, strings.Count(out.String(), "Lease is held"), out.String())
}
