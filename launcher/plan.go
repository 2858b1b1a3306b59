package launcher

import (
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// Plan is what to do about a domain now.
type Plan struct {
	// State is what the handler reads: what is decided, and what was observed of the
	// domain and its guest.
	State protocol.State
	// Actions are to be executed in order.
	Actions []Action
	// Operations are to be begun then, in any order.
	Operations []Operation
	// Recheck is after how long to decide again if nothing happens before. 0:
	// only when something happens.
	Recheck time.Duration
}

// Action is a step in the life of a domain or its guest: a [Start], [CancelStart],
// [Suspend], [Resume], [MeasureReads], [AbortMigration], [Discard], [RequestShutdown],
// [Destroy] or [Finish]. What is
// done to make a domain that is there what is desired is an [Operation].
type Action interface{ action() }

// Start prepares and creates the domain.
type Start struct{}

// CancelStart cancels a start. A domain that was created all the same stays.
type CancelStart struct{}

// Suspend pauses the guest.
type Suspend struct{}

// Resume resumes a paused guest.
type Resume struct {
	// Attempt counts the launcher's own attempts since the guest ran without an
	// I/O error for long, from 1. 0: it was asked for by a call.
	Attempt int
}

// MeasureReads finds out how much the guest has read of its disks.
type MeasureReads struct{}

// AbortMigration keeps a guest here that is sent to another launcher. It may be repeated.
type AbortMigration struct{}

// Discard ends the QEMU that waits for a guest, which never runs here. It may be repeated.
type Discard struct{}

// RequestShutdown asks the guest to power off.
type RequestShutdown struct{}

// Destroy ends QEMU.
type Destroy struct{}

// Finish ends the launcher: the domain is gone and is not created again. The
// plan's State says how it ended.
type Finish struct{}

func (Start) action()           {}
func (CancelStart) action()     {}
func (Suspend) action()         {}
func (Resume) action()          {}
func (MeasureReads) action()    {}
func (AbortMigration) action()  {}
func (Discard) action()         {}
func (RequestShutdown) action() {}
func (Destroy) action()         {}
func (Finish) action()          {}

// recheck makes the plan decide again after wait, if that is sooner.
func (p *Plan) recheck(wait time.Duration) {
	if wait > 0 && (p.Recheck == 0 || wait < p.Recheck) {
		p.Recheck = wait
	}
}
