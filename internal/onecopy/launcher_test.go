package onecopy

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// finishWait is that of launcher/supervisor: a guest of which everything has come waits so long
// for word that it shall run.
const finishWait = 10 * time.Second

// launched is a launcher with its libvirt daemon and QEMU. What it decides is launcher.Decide; its
// calls are those of launcher/supervisor without libvirt.
type launched struct {
	*world
	uid   types.UID
	alive bool // its processes
	left  bool // its folder on the node

	desired launcher.Desired
	domain  launcher.Domain
	exit    launcher.Exit
	asked   time.Time
	killed  time.Time
	stage   *protocol.Migration
	moved   bool // the guest runs elsewhere
	end     *protocol.End

	from *departure
	to   *arrival
}

// departure is a migration at its source.
type departure struct {
	performed bool // it was asked for
	over      bool // and has ended
	failed    *vmi.Finding
	why       *vmi.Finding // it is aborted
	broken    bool         // a connection of it has ended early
	confirmed *bool
}

// arrival is a migration at its target.
type arrival struct {
	waits     bool // a QEMU waits
	streams   bool // memory comes
	whole     bool // all of it has come
	late      time.Time
	finished  bool
	discarded bool
}

func (p *launched) at(s protocol.MigrationStage, why *vmi.Finding) {
	p.stage = &protocol.Migration{UID: migrationUID, Stage: s, Finding: why}
	p.note("the launcher of %s: %s", p.uid, s)
}

// actual is what launcher.Decide observes.
func (p *launched) actual() launcher.Actual {
	a := launcher.Actual{Now: p.now, Domain: p.domain, Exit: p.exit, AskedAt: p.asked, KilledAt: p.killed,
		Observed: protocol.State{Movable: true, Migration: p.stage}}
	if p.domain == launcher.Paused {
		a.Pause = protocol.Pause{Cause: protocol.PausedByMigration}
	}
	if p.stage != nil && !p.moved {
		a.Moving = *p.stage
	}
	return a
}

// state is what its handler reads.
func (p *launched) state() protocol.State { return launcher.Decide(p.desired, p.actual()).State }

func (p *launched) put(d protocol.Desired) {
	p.desired.Run, p.desired.Generation = true, d.Generation
	p.desired.Target = p.desired.Target || d.Role == vmi.RoleTarget
	if d.Stop != nil {
		p.stop(p.now.Add(time.Duration(d.Stop.GracePeriodSeconds) * time.Second))
	}
}

func (p *launched) stop(by time.Time) {
	if p.desired.StopBy.IsZero() || by.Before(p.desired.StopBy) {
		p.desired.StopBy = by
	}
}

// act does what is decided.
func (p *launched) act() {
	if !p.alive {
		return
	}
	if a := p.to; a != nil && !a.late.IsZero() && !a.finished && !p.now.Before(a.late) {
		p.discard("it was not asked to run in time")
	}
	for _, a := range launcher.Decide(p.desired, p.actual()).Actions {
		switch a.(type) {
		case launcher.Start:
			p.domain = launcher.Running
		case launcher.Discard:
			p.discard("the launcher was stopped")
		case launcher.AbortMigration:
			if d := p.from; d != nil && d.why == nil && d.performed && !d.over {
				d.why = &vmi.Finding{Reason: protocol.ReasonMigrationAborted}
				p.sendingEnds(false)
			}
		case launcher.RequestShutdown:
			p.asked = p.now
			p.gone(launcher.Exit{Cause: launcher.PoweredOff})
		case launcher.Destroy:
			p.killed = p.now
			p.gone(launcher.Exit{Cause: launcher.Destroyed})
		case launcher.Finish:
			end := launcher.Decide(p.desired, p.actual()).State.End
			p.end, p.alive = end, false
			p.note("the launcher of %s ends: %s", p.uid, end.Reason)
		}
	}
}

// gone ends the domain.
func (p *launched) gone(e launcher.Exit) {
	if p.domain == launcher.Running || p.domain == launcher.Paused {
		p.domain, p.exit = launcher.Gone, e
		if p.moved {
			p.exit.Cause = launcher.MovedAway
		}
	}
}

// die ends all processes of the pod.
func (p *launched) die() {
	p.alive = false
	p.gone(launcher.Exit{Cause: launcher.Crashed})
	p.domain = launcher.Gone
	if p.to != nil {
		p.to.waits = false
	}
}

func refused(reason string) error { return transport.Refusal(reason, "it is refused") }

// begin is a migration-begin.
func (p *launched) begin() error {
	switch {
	case p.from != nil:
		return nil // as it was answered before
	case p.domain != launcher.Running:
		return refused(protocol.ReasonUnavailable)
	case !p.desired.StopBy.IsZero():
		return refused("Stopping")
	case p.chance(16):
		p.at(protocol.MigrationStays, &vmi.Finding{Reason: protocol.ReasonMigrationFailed})
		return errors.New("libvirt fails")
	}
	p.from = &departure{}
	p.at(protocol.MigrationBegins, nil)
	return nil
}

// perform is a migration-perform. It is over when the sending is.
func (p *launched) perform() (over bool, err error) {
	d := p.from
	switch {
	case d == nil:
		return true, refused(protocol.ReasonNotFound)
	case d.performed && d.over && d.failed != nil:
		return true, &vmi.Refusal{Finding: *d.failed}
	case d.performed:
		return d.over, nil
	case d.why != nil:
		return true, &vmi.Refusal{Finding: *d.why}
	case p.domain != launcher.Running:
		return true, refused(protocol.ReasonUnavailable)
	case !p.desired.StopBy.IsZero():
		return true, refused("Stopping")
	}
	d.performed = true
	p.at(protocol.MigrationSends, nil)
	return false, nil
}

// sendingEnds ends the sending: all of the guest has left, and it stands still, or not.
func (p *launched) sendingEnds(sent bool) {
	d := p.from
	d.over = true
	if sent {
		p.domain = launcher.Paused
		p.at(protocol.MigrationSent, nil)
		return
	}
	d.failed = d.why
	if d.failed == nil {
		d.failed = &vmi.Finding{Reason: protocol.ReasonMigrationFailed}
	}
	p.at(protocol.MigrationStays, d.failed)
}

// abort is a migration-abort.
func (p *launched) abort() error {
	d := p.from
	if d == nil {
		return refused(protocol.ReasonNotFound)
	}
	if d.why == nil && !d.over {
		d.why = &vmi.Finding{Reason: protocol.ReasonMigrationAborted, Message: "the live migration has been aborted"}
		if !d.performed {
			p.at(protocol.MigrationStays, d.why)
		}
	}
	if d.performed && !d.over {
		p.sendingEnds(false)
	}
	if d.performed && d.failed == nil {
		return refused(protocol.ReasonUnavailable)
	}
	return nil
}

// confirm is a migration-confirm.
func (p *launched) confirm(moved bool) error {
	d := p.from
	switch {
	case d == nil:
		return refused(protocol.ReasonNotFound)
	case !d.performed && d.why == nil, d.performed && !d.over:
		return refused(protocol.ReasonBusy)
	case !d.performed, d.failed != nil:
		if moved {
			return refused(protocol.ReasonMalformed)
		}
		return nil
	case d.confirmed != nil && *d.confirmed != moved:
		return refused(protocol.ReasonMalformed)
	case d.confirmed != nil:
		return nil
	}
	d.confirmed = &moved
	if moved {
		p.moved = true
		if p.domain == launcher.Gone {
			p.exit.Cause = launcher.MovedAway
		}
		p.gone(launcher.Exit{Cause: launcher.MovedAway})
		return nil
	}
	p.resumes()
	p.at(protocol.MigrationStays, &vmi.Finding{Reason: protocol.ReasonNotMoved})
	return nil
}

// prepare is a migration-prepare.
func (p *launched) prepare() error {
	switch a := p.to; {
	case a != nil && a.discarded:
		return refused(protocol.ReasonNotMoved)
	case a != nil:
		return nil
	case !p.desired.Run || !p.desired.Target || p.domain != launcher.Absent:
		return refused(protocol.ReasonUnavailable)
	case !p.desired.StopBy.IsZero():
		return refused("Stopping")
	}
	p.to = &arrival{}
	p.at(protocol.MigrationReceives, nil)
	if p.chance(16) {
		p.discard("libvirt fails")
		return errors.New("libvirt fails")
	}
	p.to.waits = true
	return nil
}

// finish is a migration-finish. A guest that has not come, or that cannot run, is discarded.
func (p *launched) finish(moved bool) error {
	switch a := p.to; {
	case a == nil:
		if !p.desired.Run || !p.desired.Target || p.domain != launcher.Absent || !p.desired.StopBy.IsZero() {
			return refused(protocol.ReasonUnavailable)
		}
		p.to = &arrival{}
		p.discard("no QEMU has waited")
	case a.finished && !moved:
		return refused(protocol.ReasonMalformed)
	case a.finished:
		return nil
	case a.discarded:
	case !moved:
		p.discard("the guest stays where it is")
	case !a.waits || !a.whole || !p.desired.StopBy.IsZero() || p.chance(16):
		p.discard("the guest cannot run")
	default:
		a.finished = true
		p.domain = launcher.Running
		p.runs()
		p.at(protocol.MigrationArrived, nil)
		return nil
	}
	if moved {
		return refused(protocol.ReasonNotMoved)
	}
	return nil
}

func (p *launched) discard(why string) {
	if a := p.to; !a.discarded {
		a.discarded, a.waits = true, false
		p.at(protocol.MigrationDiscarded, &vmi.Finding{Reason: protocol.ReasonNotMoved, Message: why})
	}
}
