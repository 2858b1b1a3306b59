package libvirt

import (
	"context"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// Event is something that happened to a domain.
type Event struct {
	// Domain is the domain's name.
	Domain string
	// Kind is what happened.
	Kind EventKind
}

// EventKind is what happened to a domain.
type EventKind string

// The kinds of events.
const (
	// Started: QEMU runs.
	Started EventKind = "started"
	// Suspended: the guest was paused.
	Suspended EventKind = "suspended"
	// Resumed: the guest goes on.
	Resumed EventKind = "resumed"
	// Interrupted: QEMU was told by a signal to end.
	Interrupted EventKind = "interrupted"
	// PoweredOff: QEMU ended after the machine was switched off, by the guest
	// unless QEMU was interrupted before.
	PoweredOff EventKind = "powered off"
	// Destroyed: QEMU ended because somebody destroyed the domain.
	Destroyed EventKind = "destroyed"
	// Failed: QEMU ended by itself.
	Failed EventKind = "failed"
)

// Events returns what happens to domains from now on. The channel is closed
// when ctx ends or the connection is lost; until then it must be read from, and
// the connection is good for nothing else.
func (c *Connection) Events(ctx context.Context) (<-chan Event, error) {
	raw, err := c.rpc.LifecycleEvents(ctx)
	if err != nil {
		return nil, fmt.Errorf("subscribe to the events of domains: %w", err)
	}
	out := make(chan Event)
	go func() {
		defer close(out)
		for m := range raw {
			kind := eventKind(golibvirt.DomainEventType(m.Event), m.Detail)
			if kind == "" {
				continue
			}
			select {
			case out <- Event{Domain: m.Dom.Name, Kind: kind}:
			case <-ctx.Done(): // the library's goroutine still wants to be read from
			}
		}
	}()
	return out, nil
}

// eventKind translates libvirt's pair of numbers. Empty: of no interest.
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
		return Failed
	default:
		return ""
	}
}
