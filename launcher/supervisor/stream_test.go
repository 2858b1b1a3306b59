package supervisor

import (
	"bufio"
	"context"
	"image/png"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestTheConsoleOfAGuestIsAStream(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	first, err := p.client.Stream(t.Context(), protocol.StreamConsole)
	require.NoError(t, err)
	defer first.Close()
	_, err = first.Write([]byte("d"))
	require.NoError(t, err)
	line, err := bufio.NewReader(first).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "power button ignored\n", line)

	second, err := p.client.Stream(t.Context(), protocol.StreamConsole)
	require.NoError(t, err)
	defer second.Close()
	_, err = io.ReadAll(first)
	require.NoError(t, err, "a new console ends the one before")
	_, err = second.Write([]byte("o"))
	require.NoError(t, err)
	line, err = bufio.NewReader(second).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "powering off\n", line)
	p.ends(protocol.Shutdown, "the guest powered off")
	require.Contains(t, p.console.String(), "power button ignored", "the log has all of it, too")
}

func TestAGuestIsTypedInto(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	_, err := io.WriteString(p.keyboard, "o") // before there is a guest
	require.NoError(t, err)
	p.run()
	_, err = io.WriteString(p.keyboard, "d")
	require.NoError(t, err)
	p.says("power button ignored", 1)

	stream, err := p.client.Stream(t.Context(), protocol.StreamConsole)
	require.NoError(t, err)
	defer stream.Close()
	_, err = stream.Write([]byte("d"))
	require.NoError(t, err)
	lines := bufio.NewReader(stream)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	_, err = io.WriteString(p.keyboard, "d")
	require.NoError(t, err)
	line, err := lines.ReadString('\n')
	require.NoError(t, err, "what is typed ends no console")
	require.Equal(t, "power button ignored\n", line)

	require.NoError(t, stream.Close())
	// QEMU drops what it has not read of a connection that ends.
	p.until("the stream ends", func() bool { return strings.Contains(p.log.String(), "a stream ended") })
	_, err = io.WriteString(p.keyboard, "d")
	require.NoError(t, err)
	p.says("power button ignored", 4)
	require.NoError(t, p.keyboard.Close())
	p.phase(protocol.Running)
	// Only the launcher can connect: what was typed last may have opened the port.
	last, err := p.client.Stream(t.Context(), protocol.StreamConsole)
	require.NoError(t, err)
	defer last.Close()
	_, err = last.Write([]byte("o"))
	require.NoError(t, err)
	p.ends(protocol.Shutdown, "the guest powered off")
}

func TestTheScreenOfAGuestIsAStream(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	_, err := p.client.Stream(t.Context(), protocol.StreamScreen)
	var refusal *control.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, protocol.ReasonUnavailable, refusal.Reason, "there is no domain yet")
	p.run()
	for range 2 {
		screen, err := p.client.Stream(t.Context(), protocol.StreamScreen)
		require.NoError(t, err)
		defer screen.Close()
		greeting := make([]byte, 12)
		_, err = io.ReadFull(screen, greeting)
		require.NoError(t, err)
		require.Equal(t, "RFB 003.008\n", string(greeting))
	}
	_, err = p.client.Stream(t.Context(), protocol.StreamScreenIfFree)
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, protocol.ReasonBusy, refusal.Reason)

	shot, err := p.client.Stream(t.Context(), protocol.StreamScreenshot)
	require.NoError(t, err)
	defer shot.Close()
	picture, err := png.Decode(shot)
	require.NoError(t, err)
	require.Positive(t, picture.Bounds().Dx())
	err = p.client.Call(t.Context(), protocol.CallGuestOSInfo, nil, nil)
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, protocol.ReasonNoAgent, refusal.Reason)
	require.NoError(t, p.client.Call(t.Context(), protocol.CallReset, nil, nil))
	require.NoError(t, p.client.Call(t.Context(), protocol.CallSoftReboot, nil, nil))
	_, err = p.client.Namespace(t.Context())
	require.NoError(t, err)
}

func TestADaemonThatDoesNotStartIsAFinding(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable(), "DAEMON=/bin/false")
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 1, Instance: instance()}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for state, err := range p.client.Watch(ctx) {
		require.NoError(t, err)
		if state.Finding != nil {
			require.Equal(t, "LibvirtUnavailable", state.Finding.Reason)
			require.Contains(t, state.Finding.Message, "libvirtd ended with exit code 1")
			require.Equal(t, protocol.Starting, state.Phase)
			break
		}
	}
	dials := strings.Count(p.log.String(), "no session with the libvirt daemon")
	require.Greater(t, dials, 20, "the first ones are quick")
	require.Less(t, dials, 400)
}

func TestADeviceThatIsDesiredLaterIsAFinding(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 1, Instance: withoutSeed()}))
	p.phase(protocol.Running)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 2, Instance: instance()}))
	p.until("the state is about the second generation", func() bool {
		state, err := p.client.State(t.Context())
		require.NoError(t, err)
		if state.Generation < 2 {
			require.Nil(t, state.Finding)
			return false
		}
		require.Equal(t, "DevicesDiffer", state.Finding.Reason)
		require.Equal(t, "disk seed is not attached: the devices of a domain that runs are not changed", state.Finding.Message)
		return true
	})
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 3, Instance: withoutSeed()}))
	p.until("there is no finding any more", func() bool {
		state, err := p.client.State(t.Context())
		require.NoError(t, err)
		return state.Generation == 3 && state.Finding == nil
	})
	err := p.client.Put(t.Context(), protocol.Desired{Generation: 2, Instance: instance()})
	var refusal *control.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, protocol.ReasonStale, refusal.Reason)
}
