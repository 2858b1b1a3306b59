package supervisor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// counted are the statistics of the guest's first processor.
func (p *pod) counted() map[protocol.Stat]float64 {
	p.Helper()
	s, err := p.client.Stats(p.Context())
	require.NoError(p, err)
	require.Equal(p, s, s.Sanitized())
	require.Len(p, s.Of(protocol.VCPU), 1)
	return s.Of(protocol.VCPU)[0].Values
}

// countedOf are the statistics of the only part of a group.
func (p *pod) countedOf(g protocol.Group) protocol.Part {
	p.Helper()
	s, err := p.client.Stats(p.Context())
	require.NoError(p, err)
	require.Len(p, s.Of(g), 1, g)
	return s.Of(g)[0]
}

func TestWhatAGuestUsesIsCountedWhileItIsThere(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	_, err := p.client.Stats(t.Context())
	refusal := (*control.Error)(nil)
	require.ErrorAs(t, err, &refusal, "there is no domain yet")
	require.Equal(t, protocol.ReasonUnavailable, refusal.Reason)

	p.run()
	first := p.counted()
	require.Positive(t, first[protocol.VCPUTime])
	require.Contains(t, first, protocol.VCPUState)
	require.Contains(t, first, protocol.VCPUDelay)
	for _, stat := range []protocol.Stat{
		protocol.CPUTime, protocol.CPUUser, protocol.CPUSystem, protocol.BalloonCurrent, protocol.BalloonRSS, protocol.PinCells,
	} {
		require.Positive(t, p.countedOf(stat.Group()).Values[stat], stat)
	}
	all, err := p.client.Stats(t.Context())
	require.NoError(t, err)
	blocks := all.Of(protocol.Block)
	require.Len(t, blocks, len(instance().Spec.Domain.Devices.Disks))
	for i, d := range instance().Spec.Domain.Devices.Disks {
		require.Equal(t, d.Name, blocks[i].Name, "its name in the spec")
		require.Len(t, blocks[i].Values, 8, "requests, bytes and times")
	}
	require.Positive(t, blocks[0].Values[protocol.ReadBytes])

	// The kernel counts the time of a processor in ticks of up to 10 ms.
	p.until("the guest has used more of its processor", func() bool {
		p.write("d")
		return p.counted()[protocol.VCPUTime] > first[protocol.VCPUTime]
	})

	require.NoError(t, p.client.Call(t.Context(), protocol.CallPause, nil, nil))
	require.Positive(t, p.counted()[protocol.VCPUTime], "a paused guest")
	require.NoError(t, p.client.Call(t.Context(), protocol.CallUnpause, nil, nil))

	// A QEMU that hangs costs each question its time, and the launcher nothing.
	qemu := p.process("qemu-system-x86_64")
	require.NoError(t, unix.Kill(qemu, unix.SIGSTOP))
	for range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, _ = p.client.Stats(ctx)
		cancel()
	}
	_, err = p.client.State(t.Context())
	require.NoError(t, err)
	require.NoError(t, unix.Kill(qemu, unix.SIGCONT))
	p.until("the guest is counted again", func() bool {
		s, err := p.client.Stats(t.Context())
		return err == nil && len(s.Of(protocol.VCPU)) == 1
	})
}
