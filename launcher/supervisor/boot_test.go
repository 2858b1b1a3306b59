package supervisor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestADiskThatNothingBootsIsReported(t *testing.T) {
	t.Parallel()
	p := newPod(t, map[string][]byte{"empty.img": make([]byte, 1<<20)})
	began := time.Now()
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance()}))
	p.phase(protocol.Running)
	p.reports("a guest that did not boot", func(s protocol.State) bool {
		return s.NotBooted != nil && s.NotBooted.Reason == protocol.ReasonNothingRead
	})
	require.Greater(t, time.Since(began), launcher.BootDelay)
	p.phase(protocol.Running)
}

func TestAGuestThatBootsAfterAllIsNotReportedAnyMore(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	// As far as can be seen, a boot sector that reads nothing more has not booted.
	p.reports("a guest that did not boot", func(s protocol.State) bool { return s.NotBooted != nil })
	p.write("b")
	p.says("disk read", 1)
	p.reports("a guest that has booted", func(s protocol.State) bool { return s.NotBooted == nil })
}

func TestAGuestThatHasArrivedAndIsResumedHasBootedElsewhere(t *testing.T) {
	t.Parallel()
	arrived := facts{domain: launcher.Paused}
	arrived.runs()
	require.Equal(t, launcher.Running, arrived.domain)
	require.Zero(t, arrived.boot.Began)
	before := time.Now()
	started := facts{domain: launcher.Paused, boot: launcher.Boot{Began: before.Add(-time.Hour)}}
	started.runs()
	require.False(t, started.boot.Began.Before(before), "it has not run meanwhile")
}
