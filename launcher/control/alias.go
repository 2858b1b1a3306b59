package control

import (
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// The names that handler/controller uses until it uses launcher/protocol. This
// file goes with their last use.
type (
	State     = protocol.State
	Desired   = protocol.Desired
	Stop      = protocol.Stop
	Phase     = protocol.Phase
	End       = protocol.End
	EndReason = protocol.EndReason
	Disk      = protocol.Disk
	Agent     = protocol.Agent
	Problem   = vmi.Finding
)

const (
	Waiting  = protocol.Waiting
	Starting = protocol.Starting
	Running  = protocol.Running
	Paused   = protocol.Paused
	Stopping = protocol.Stopping
	Ended    = protocol.Ended

	Shutdown     = protocol.Shutdown
	Killed       = protocol.Killed
	Crashed      = protocol.Crashed
	NeverStarted = protocol.CannotStart
	Cancelled    = protocol.Cancelled
)
