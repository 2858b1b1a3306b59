package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// guestTimeout is how long all questions of one call to the agent may take.
	guestTimeout = 40 * time.Second
	// thawAfter is when file systems are thawed whose freeze names no time.
	thawAfter = 5 * time.Minute
	// mostThaw is the latest time at which file systems are thawed.
	mostThaw = time.Hour
	// mostSummary is how many users and file systems the answer about the guest has.
	mostSummary = 10
)

// guestCalls are the calls of users about the guest.
func (s *Supervisor) guestCalls() map[protocol.Call]func(context.Context, []byte) (any, error) {
	return map[protocol.Call]func(context.Context, []byte) (any, error){
		protocol.CallReset: func(ctx context.Context, _ []byte) (any, error) {
			return nil, s.withStill(ctx, protocol.CallReset, func(ctx context.Context, c *libvirt.Connection) error { return c.Reset(ctx, s.domainName()) })
		},
		protocol.CallSoftReboot: func(ctx context.Context, _ []byte) (any, error) {
			return nil, s.withStill(ctx, protocol.CallSoftReboot, s.softReboot)
		},
		protocol.CallFreeze: s.freeze,
		protocol.CallUnfreeze: func(ctx context.Context, _ []byte) (any, error) {
			return nil, s.withAgent(ctx, func(ctx context.Context, c *libvirt.Connection) error {
				if err := c.Thaw(ctx, s.domainName()); err != nil {
					return err
				}
				s.thaw.set(nil)
				s.setFrozen(false)
				return nil
			})
		},
		protocol.CallGuestOSInfo:    asking(s, s.guestFacts),
		protocol.CallUserList:       asking(s, s.guestUsers),
		protocol.CallFileSystemList: asking(s, s.guestFileSystems),
	}
}

// asking returns what answers a call with what the agent says.
func asking[T any](s *Supervisor, ask func(context.Context, *libvirt.Connection) (T, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, _ []byte) (any, error) {
		var out T
		err := s.withAgent(ctx, func(ctx context.Context, c *libvirt.Connection) (err error) {
			out, err = ask(ctx, c)
			return err
		})
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// withGuest does something with a domain that there is.
func (s *Supervisor) withGuest(ctx context.Context, do func(context.Context, *libvirt.Connection) error) error {
	if err := s.facts.reachable(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, guestTimeout)
	defer cancel()
	conn, err := s.session.connection(ctx)
	if err == nil {
		err = do(ctx, conn)
	}
	if errors.Is(err, libvirt.ErrNotFound) {
		return errNotRunning
	}
	return err
}

// withAgent does something with an agent that is connected. The guest's agent answers one
// question at a time.
func (s *Supervisor) withAgent(ctx context.Context, do func(context.Context, *libvirt.Connection) error) error {
	return s.withGuest(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		connected, err := c.AgentConnected(ctx, s.domainName())
		if err == nil && !connected {
			err = transport.Refusal(protocol.ReasonNoAgent, "the guest's agent is not connected: install and start qemu-guest-agent in the guest")
		}
		if err != nil {
			return err
		}
		return do(ctx, c)
	})
}

func (s *Supervisor) guestFacts(ctx context.Context, c *libvirt.Connection) (vmi.VirtualMachineInstanceGuestAgentInfo, error) {
	out, err := c.GuestFacts(ctx, s.domainName())
	if err != nil {
		return out, err
	}
	if (out.FSFreezeStatus != "") != s.facts.known().Frozen {
		s.askFrozen(ctx)
	}
	// An agent may not know these.
	if users, err := c.GuestUsers(ctx, s.domainName()); err == nil {
		out.UserList = users[:min(len(users), mostSummary)]
	}
	out.FSInfo.Filesystems = []vmi.VirtualMachineInstanceFileSystem{}
	if all, err := c.GuestFileSystems(ctx, s.domainName()); err == nil {
		out.FSInfo.Filesystems = all[:min(len(all), mostSummary)]
	}
	return out, nil
}

func (s *Supervisor) guestUsers(ctx context.Context, c *libvirt.Connection) (out vmi.VirtualMachineInstanceGuestOSUserList, err error) {
	out.Items, err = c.GuestUsers(ctx, s.domainName())
	return out, err
}

func (s *Supervisor) guestFileSystems(ctx context.Context, c *libvirt.Connection) (out vmi.VirtualMachineInstanceFileSystemList, err error) {
	out.Items, err = c.GuestFileSystems(ctx, s.domainName())
	return out, err
}

// thaw is the thaw that follows a freeze.
type thaw struct {
	mu    sync.Mutex
	timer *time.Timer
}

// set replaces the thaw that follows. Nil: none does.
func (t *thaw) set(timer *time.Timer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = timer
}

// freeze freezes the guest's file systems. They are thawed after the time that the options
// name, also if whoever asked is gone.
func (s *Supervisor) freeze(ctx context.Context, options []byte) (any, error) {
	o := vmi.FreezeUnfreezeTimeout{UnfreezeTimeout: &metav1.Duration{Duration: thawAfter}}
	if len(options) > 0 {
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, transport.Refusal(protocol.ReasonMalformed, "the options of freeze cannot be read: %v", err)
		}
	}
	after := thawAfter
	if o.UnfreezeTimeout != nil {
		if o.UnfreezeTimeout.Duration < 0 {
			return nil, transport.Refusal(protocol.ReasonMalformed,
				"unfreezeTimeout of freeze is %s: give a time that is not negative; 0s thaws never by itself", o.UnfreezeTimeout.Duration)
		}
		after = min(o.UnfreezeTimeout.Duration, mostThaw)
	}
	if err := s.facts.still(protocol.CallFreeze); err != nil {
		return nil, err
	}
	return nil, s.withAgent(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		// Before: the freeze may succeed though its answer does not come.
		if after > 0 {
			s.thaw.set(time.AfterFunc(after, s.thawNow))
		} else {
			s.thaw.set(nil)
		}
		frozen, err := c.Freeze(ctx, s.domainName())
		if err != nil {
			s.work.Go(func() { s.askFrozen(s.inner) })
			return err
		}
		s.setFrozen(frozen)
		return nil
	})
}

// setFrozen notes whether the guest's file systems are frozen.
func (s *Supervisor) setFrozen(frozen bool) {
	s.facts.note(func(s *protocol.State) { s.Frozen = frozen })
}

// askFrozen asks the agent whether they are. What is known stays if it does not answer.
func (s *Supervisor) askFrozen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := s.session.connection(ctx)
	if err != nil {
		return
	}
	frozen, err := conn.Frozen(ctx, s.domainName())
	if err != nil {
		s.config.Logger.Debug("it is not known whether the guest's file systems are frozen", "err", err)
		return
	}
	s.setFrozen(frozen)
}

// thawNow thaws the guest's file systems. It tries for a minute, and for as long as they
// are known to be frozen and the launcher does not end.
func (s *Supervisor) thawNow() {
	const attempts, pause = 6, 10 * time.Second
	for i := 0; i < attempts || s.facts.known().Frozen; i++ {
		err := s.withAgent(s.inner, func(ctx context.Context, c *libvirt.Connection) error { return c.Thaw(ctx, s.domainName()) })
		s.config.Logger.Info("thaw the guest's file systems", "err", err)
		if err == nil {
			s.setFrozen(false)
		}
		if err == nil || errors.Is(err, errNotRunning) {
			return
		}
		select {
		case <-time.After(pause):
		case <-s.inner.Done():
			return
		}
	}
}
