package libvirt

import (
	"context"
	"fmt"
	"sync"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// subscription is one of libvirt's kinds of events and its translation. An Event
// without a Kind is of no interest.
type subscription struct {
	id        golibvirt.DomainEventID
	what      string
	translate func(message any) Event
}

// subscriptions are the kinds of events that are subscribed to. libvirt's
// JOB_COMPLETED and the other events with typed parameters are not among them:
// go-libvirt cannot decode them and drops them silently. BLOCK_JOB_2 it does not
// route at all, so BLOCK_JOB is used, which names the file of a disk and not its
// target.
var subscriptions = []subscription{
	{golibvirt.DomainEventIDLifecycle, "domains", lifecycleEvent},
	{golibvirt.DomainEventIDAgentLifecycle, "agents", agentLifecycleEvent},
	{golibvirt.DomainEventIDReboot, "reboots", rebootEvent},
	{golibvirt.DomainEventIDIoErrorReason, "I/O errors", ioErrorEvent},
	{golibvirt.DomainEventIDWatchdog, "watchdogs", watchdogEvent},
	{golibvirt.DomainEventIDDeviceRemoved, "removed devices", deviceRemovedEvent},
	{golibvirt.DomainEventIDDeviceRemovalFailed, "devices that are kept", deviceKeptEvent},
	{golibvirt.DomainEventIDBlockJob, "block jobs", blockJobEvent},
	{golibvirt.DomainEventIDBalloonChange, "balloons", balloonEvent},
}

// Events returns what happens to domains from now on. When ctx ends the connection is
// closed, and the channel when it is closed or lost; until then it must be read from,
// and the connection is good for nothing else. Events of one kind come in their order;
// an IOError may come before or after the Suspended that it causes.
//
// The domain that go-libvirt's SubscribeEvents takes is ignored by it: events of all
// domains come. Its context must not end: an event that comes while a subscription
// ends blocks the library for ever.
func (c *Connection) Events(ctx context.Context) (<-chan Event, error) {
	out := make(chan Event)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // fails if it is closed already
	var all sync.WaitGroup
	for _, s := range subscriptions {
		raw, err := c.rpc.SubscribeEvents(context.WithoutCancel(ctx), s.id, nil)
		if err != nil {
			stop()
			return nil, fmt.Errorf("subscribe to the events of %s: %w", s.what, err)
		}
		all.Go(func() {
			for m := range raw { // the library's goroutine blocks until its channel is read
				e := s.translate(m)
				if e.Kind == "" {
					continue
				}
				select {
				case out <- e:
				case <-ctx.Done():
				}
			}
		})
	}
	go func() {
		all.Wait()
		stop()
		close(out)
	}()
	return out, nil
}

// The library returns each event as a pointer to the type of its kind, and nothing
// else under its ID.

func lifecycleEvent(m any) Event {
	msg := m.(*golibvirt.DomainEventCallbackLifecycleMsg).Msg
	e := lifecycle(golibvirt.DomainEventType(msg.Event), msg.Detail)
	e.Domain = msg.Dom.Name
	return e
}

func agentLifecycleEvent(m any) Event {
	msg := m.(*golibvirt.DomainEventCallbackAgentLifecycleMsg)
	return Event{Domain: msg.Dom.Name, Kind: agentEvent(golibvirt.ConnectDomainEventAgentLifecycleReason(msg.Reason))}
}

func rebootEvent(m any) Event {
	return Event{Domain: m.(*golibvirt.DomainEventCallbackRebootMsg).Msg.Dom.Name, Kind: Rebooted}
}

var ioErrorActions = map[golibvirt.DomainEventIOErrorAction]Action{
	golibvirt.DomainEventIoErrorNone:   ActionNone,
	golibvirt.DomainEventIoErrorPause:  ActionPause,
	golibvirt.DomainEventIoErrorReport: ActionReport,
}

// noSpace is the only reason that libvirt's event of an I/O error gives.
const noSpace = "enospc"

func ioErrorEvent(m any) Event {
	msg := m.(*golibvirt.DomainEventCallbackIOErrorReasonMsg).Msg
	return Event{
		Domain: msg.Dom.Name, Kind: IOError, Device: msg.DevAlias, NoSpace: msg.Reason == noSpace,
		Action: ioErrorActions[golibvirt.DomainEventIOErrorAction(msg.Action)],
	}
}

var watchdogActions = map[golibvirt.DomainEventWatchdogAction]Action{
	golibvirt.DomainEventWatchdogNone:      ActionNone,
	golibvirt.DomainEventWatchdogPause:     ActionPause,
	golibvirt.DomainEventWatchdogReset:     ActionReset,
	golibvirt.DomainEventWatchdogPoweroff:  ActionPowerOff,
	golibvirt.DomainEventWatchdogShutdown:  ActionShutdown,
	golibvirt.DomainEventWatchdogInjectnmi: ActionInjectNMI,
}

func watchdogEvent(m any) Event {
	msg := m.(*golibvirt.DomainEventCallbackWatchdogMsg).Msg
	return Event{Domain: msg.Dom.Name, Kind: WatchdogExpired, Action: watchdogActions[golibvirt.DomainEventWatchdogAction(msg.Action)]}
}

func deviceRemovedEvent(m any) Event {
	msg := m.(*golibvirt.DomainEventCallbackDeviceRemovedMsg).Msg
	return Event{Domain: msg.Dom.Name, Kind: DeviceRemoved, Device: msg.DevAlias}
}

func deviceKeptEvent(m any) Event {
	msg := m.(*golibvirt.DomainEventCallbackDeviceRemovalFailedMsg)
	return Event{Domain: msg.Dom.Name, Kind: DeviceKept, Device: msg.DevAlias}
}

func blockJobEvent(m any) Event {
	msg := m.(*golibvirt.DomainEventCallbackBlockJobMsg).Msg
	return Event{Domain: msg.Dom.Name, Kind: BlockJobChanged, Path: msg.Path, Job: jobStates[golibvirt.ConnectDomainEventBlockJobStatus(msg.Status)]}
}

func balloonEvent(m any) Event {
	msg := m.(*golibvirt.DomainEventCallbackBalloonChangeMsg).Msg
	return Event{Domain: msg.Dom.Name, Kind: BalloonChanged, MemoryBytes: int64(msg.Actual) << 10}
}
