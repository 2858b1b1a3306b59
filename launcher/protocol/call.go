package protocol

// Call is a command to a launcher. It is acknowledged when it is done, and calling
// it again when it is done already succeeds and changes nothing.
type Call string

// The calls.
const (
	// CallPause pauses the guest until [CallUnpause].
	CallPause Call = "pause"
	// CallUnpause resumes a paused guest, whatever paused it.
	CallUnpause Call = "unpause"
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
)
