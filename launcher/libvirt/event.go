package libvirt

import (
	"context"
	"fmt"
	"sync"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// Event is something that happened to a domain.
type Event struct {
	// Domain is the domain's name.
	Domain string
	// Kind is what happened.
	Kind EventKind
	// Pause is the cause of a pause. Empty unless Kind is Suspended.
	Pause protocol.PauseCause
}

// EventKind is what happened to a domain.
type EventKind string

// The kinds of events.
const (
	// Started: QEMU runs.
	Started EventKind = "started"
	// Suspended: the guest was paused.
	Suspended EventKind = "suspended"
	// Resumed: the guest runs again.
	Resumed EventKind = "resumed"
	// Interrupted: QEMU got a signal to end.
	Interrupted EventKind = "interrupted"
	// PoweredOff: QEMU ended after the guest powered off, or after it was
	// interrupted.
	PoweredOff EventKind = "powered off"
	// Destroyed: QEMU ended because the domain was destroyed.
	Destroyed EventKind = "destroyed"
	// Failed: QEMU ended by itself.
	Failed EventKind = "failed"
	// Rebooted: the guest rebooted, or was reset.
	Rebooted EventKind = "rebooted"
	// Panicked: the panic device reports that the kernel of the guest crashed.
	Panicked EventKind = "panicked"
	// AgentChanged: an agent in the guest opened its channel, or closed it.
	AgentChanged EventKind = "agent changed"
)

// Events returns what happens to domains from now on. The channel is closed
// when ctx ends or the connection is lost; until then it must be read from, and
// the connection is good for nothing else.
func (c *Connection) Events(ctx context.Context) (<-chan Event, error) {
	ctx, cancel := context.WithCancel(ctx)
	raw, err := c.rpc.LifecycleEvents(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("subscribe to the events of domains: %w", err)
	}
	agents, err := c.rpc.SubscribeEvents(ctx, golibvirt.DomainEventIDAgentLifecycle, nil)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("subscribe to the events of agents: %w", err)
	}
	reboots, err := c.rpc.SubscribeEvents(ctx, golibvirt.DomainEventIDReboot, nil)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("subscribe to the reboots of domains: %w", err)
	}
	out := make(chan Event)
	send := func(e Event) {
		if e.Kind == "" {
			return
		}
		select {
		case out <- e:
		case <-ctx.Done(): // the library's goroutine blocks until its channel is read
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		for m := range raw {
			e := lifecycle(golibvirt.DomainEventType(m.Event), m.Detail)
			e.Domain = m.Dom.Name
			send(e)
		}
	})
	all.Go(func() {
		for m := range agents {
			if m, ok := m.(*golibvirt.DomainEventCallbackAgentLifecycleMsg); ok {
				send(Event{Domain: m.Dom.Name, Kind: agentEvent(golibvirt.ConnectDomainEventAgentLifecycleReason(m.Reason))})
			}
		}
	})
	all.Go(func() {
		for m := range reboots {
			if m, ok := m.(*golibvirt.DomainEventCallbackRebootMsg); ok {
				send(Event{Domain: m.Msg.Dom.Name, Kind: Rebooted})
			}
		}
	})
	go func() {
		all.Wait()
		cancel()
		close(out)
	}()
	return out, nil
}

// agentEvent translates libvirt's reason. Empty: of no interest, such as that a
// domain which was just started has no agent.
func agentEvent(reason golibvirt.ConnectDomainEventAgentLifecycleReason) EventKind {
	if reason == golibvirt.ConnectDomainEventAgentLifecycleReasonChannel {
		return AgentChanged
	}
	return ""
}

// lifecycle translates libvirt's pair of numbers. Without a Kind: of no interest.
func lifecycle(event golibvirt.DomainEventType, detail int32) Event {
	e := Event{Kind: eventKind(event, detail)}
	if e.Kind == Suspended {
		e.Pause = pauseCause(suspendDetails, golibvirt.DomainEventSuspendedDetailType(detail))
	}
	return e
}

func eventKind(event golibvirt.DomainEventType, detail int32) EventKind {
	switch event {
	case golibvirt.DomainEventStarted:
		return Started
	case golibvirt.DomainEventSuspended:
		return Suspended
	case golibvirt.DomainEventResumed:
		return Resumed
	case golibvirt.DomainEventShutdown:
		if golibvirt.DomainEventShutdownDetailType(detail) == golibvirt.DomainEventShutdownHost {
			return Interrupted
		}
		return ""
	case golibvirt.DomainEventStopped:
		switch golibvirt.DomainEventStoppedDetailType(detail) {
		case golibvirt.DomainEventStoppedShutdown:
			return PoweredOff
		case golibvirt.DomainEventStoppedDestroyed:
			return Destroyed
		default:
			return Failed
		}
	case golibvirt.DomainEventCrashed:
		return Panicked // the end of the domain, if it is one, is an event of its own
	default:
		return ""
	}
}
