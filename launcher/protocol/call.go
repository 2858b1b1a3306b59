package protocol

// Call is a command or a question to a launcher. It is acknowledged when it is done, and
// calling it again when it is done already succeeds and changes nothing, but for
// [CallReset] and [CallSoftReboot], which do it again. Options and answers are JSON.
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
)

// The reasons of a refusal, in a [vmi.Finding].
const (
	// ReasonMalformed: the request is not what the protocol says.
	ReasonMalformed = "Malformed"
	// ReasonTooLarge: the request is larger than any VMI needs.
	ReasonTooLarge = "TooLarge"
	// ReasonOtherInstance: the request is about a VMI that is not the launcher's.
	ReasonOtherInstance = "OtherMachine"
	// ReasonInvalid: the domain cannot be made as it is desired.
	ReasonInvalid = "Invalid"
	// ReasonStale: the Desired is older than the one in force.
	ReasonStale = "Stale"
	// ReasonUnknown: the launcher does not know the call or the stream.
	ReasonUnknown = "Unknown"
	// ReasonUnavailable: the launcher cannot do it now.
	ReasonUnavailable = "Unavailable"
	// ReasonBusy: another client has the stream, or there are as many as may be open.
	ReasonBusy = "Busy"
	// ReasonNoAgent: the call needs the guest's agent, which is not connected.
	ReasonNoAgent = "NoAgent"
	// ReasonNotFound: there is no such VMI on the node. Only a handler says it.
	ReasonNotFound = "NotFound"
)
