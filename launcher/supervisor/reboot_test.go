package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/libvirt"
)

// rebooted is a guest that notes by what it is asked to reboot.
type rebooted struct {
	connected bool
	fails     error // of the agent
	asked     []string
}

func (r *rebooted) AgentConnected(context.Context, string) (bool, error) { return r.connected, nil }

func (r *rebooted) RebootByAgent(_ context.Context, name string) error {
	r.asked = append(r.asked, "agent of "+name)
	return r.fails
}

func (r *rebooted) Reboot(_ context.Context, name string) error {
	r.asked = append(r.asked, "button of "+name)
	return nil
}

func TestAnAgentThatFailsToRebootIsFollowedByThePowerButton(t *testing.T) {
	t.Parallel()
	failed := errors.New("child process has failed to shutdown")
	for name, tt := range map[string]struct {
		guest  rebooted
		button bool
		asked  []string
		err    error
	}{
		"no agent":                         {rebooted{}, true, []string{"button of a"}, nil},
		"an agent":                         {rebooted{connected: true}, true, []string{"agent of a"}, nil},
		"an agent that fails":              {rebooted{connected: true, fails: failed}, true, []string{"agent of a", "button of a"}, nil},
		"an agent that fails, no button":   {rebooted{connected: true, fails: failed}, false, []string{"agent of a"}, failed},
		"a guest that has ended meanwhile": {rebooted{connected: true, fails: libvirt.ErrNotFound}, true, []string{"agent of a"}, libvirt.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, softReboot(t.Context(), &tt.guest, "a", tt.button, slog.New(slog.DiscardHandler)), tt.err)
			require.Equal(t, tt.asked, tt.guest.asked)
		})
	}
}
