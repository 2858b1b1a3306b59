package protocol

// Stream is a connection into a launcher's pod, by name.
type Stream string

// The streams.
const (
	// StreamNetworkNamespace carries nothing but the descriptor of the pod's
	// network namespace, as SCM_RIGHTS of the first byte of the answer.
	StreamNetworkNamespace Stream = "network-namespace"
	// StreamConsole is the guest's serial console, raw bytes in both directions.
	StreamConsole Stream = "console"
	// StreamScreen is the guest's screen, in the RFB protocol. It ends those before.
	StreamScreen Stream = "screen"
	// StreamScreenIfFree is the same, and is refused as [ReasonBusy] while another is
	// open.
	StreamScreenIfFree Stream = "screen-if-free"
	// StreamScreenshot is a picture of the guest's screen as a PNG, and then ends.
	StreamScreenshot Stream = "screenshot"
)
