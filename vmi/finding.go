package vmi

// Finding is why something is not as it should be: a reason in CamelCase for
// programs, and a message for people. Controllers turn it into a condition and
// into the text of an event.
type Finding struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}
