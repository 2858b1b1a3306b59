package protocol

import "github.com/podvisor/podvisor/vmi"

// Call is a command or a question to a launcher. It is acknowledged when it is done, and
// calling it again when it is done already succeeds and changes nothing, but for
// [CallReset] and [CallSoftReboot], which do it again. Options and answers are JSON. A name
// with a dot is that of another program, whose launchers answer it: no release of this
// module has such a call.
type Call string

// MaxOptions and MaxAnswer are the longest options of a call and the longest answer to
// one, in bytes.
const (
	MaxOptions = 16 << 10
	MaxAnswer  = 128 << 10
)

// The calls.
const (
	// CallPause pauses the guest until [CallUnpause].
	CallPause Call = "pause"
	// CallUnpause resumes a paused guest, whatever paused it.
	CallUnpause Call = "unpause"
	// CallReset resets the guest as the button of a computer does.
	CallReset Call = "reset"
	// CallSoftReboot asks the guest to reboot.
	CallSoftReboot Call = "softreboot"
	// CallFreeze freezes the guest's file systems. Its options are a
	// [vmi.FreezeUnfreezeTimeout]. It needs the guest's agent.
	CallFreeze Call = "freeze"
	// CallUnfreeze thaws them. It needs the guest's agent.
	CallUnfreeze Call = "unfreeze"
	// CallGuestOSInfo is answered with a [vmi.VirtualMachineInstanceGuestAgentInfo]. It
	// needs the guest's agent.
	CallGuestOSInfo Call = "guestosinfo"
	// CallUserList is answered with a [vmi.VirtualMachineInstanceGuestOSUserList]. It
	// needs the guest's agent.
	CallUserList Call = "userlist"
	// CallFileSystemList is answered with a [vmi.VirtualMachineInstanceFileSystemList].
	// It needs the guest's agent.
	CallFileSystemList Call = "filesystemlist"
	// CallDestroy switches the guest off at once and ends the launcher. A handler calls it of
	// a launcher whose VMI is not in its pod any more, and may run elsewhere: it needs not
	// know which VMI that was. It is no call of users.
	CallDestroy Call = "destroy"
)

// AsksAgent says that the guest's agent may be asked, which takes longer than what the
// launcher does itself. Some guests reboot without.
func (c Call) AsksAgent() bool {
	switch c {
	case CallSoftReboot, CallFreeze, CallUnfreeze, CallGuestOSInfo, CallUserList, CallFileSystemList:
		return true
	}
	return false
}

// The reasons of a refusal, in a [vmi.Finding], which the package vmi explains.
const (
	ReasonMalformed     = vmi.RefusedMalformed
	ReasonTooLarge      = vmi.RefusedTooLarge
	ReasonOtherInstance = vmi.RefusedOtherInstance
	ReasonInvalid       = vmi.RefusedInvalid
	ReasonStale         = vmi.RefusedStale
	ReasonUnknown       = vmi.RefusedUnknown
	ReasonUnavailable   = vmi.RefusedUnavailable
	ReasonBusy          = vmi.RefusedBusy
	ReasonNoAgent       = vmi.RefusedNoAgent
	ReasonNotFound      = vmi.RefusedNotFound
)
