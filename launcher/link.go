package launcher

import "fmt"

// SetLink makes the link of an interface what its Device says.
const SetLink OperationKind = "set link"

// setLink is due when the link of an interface has another state than desired.
var setLink = operationKind{
	name:   SetLink,
	due:    changing(func(want, have Device) bool { return want.Link != "" && have.Link != "" && want.Link != have.Link }),
	text:   func(d Device) string { return fmt.Sprintf("set the link of %s %s", d.Name, d.Link) },
	reason: ReasonSwitchFailed,
}
