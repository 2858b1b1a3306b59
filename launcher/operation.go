package launcher

import (
	"fmt"
	"maps"
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// Operation makes a domain that is there, or one of its devices, what is desired.
//
// It is data: what is due follows from the difference between desired and actual
// devices, by the table of kinds below. launcher/supervisor does it by a table of its
// own, and notes in [Operations] what becomes of it. So an operation is a file here, a
// file there and a line in each table.
//
// The steps in the life of a domain and its guest are [Action] and no Operation. An
// Operation is tried until it succeeds, with a back-off, alongside others. A [Start] is
// under way as long as the domain is [Starting], can be cancelled, and its fault may be
// the end. [RequestShutdown] and [Destroy] are repeated until a deadline whether they succeed or
// not, and must not wait for each other. [Suspend] and [Resume] are opposites of which
// the later call counts, and its callers are answered.
type Operation struct {
	// Kind says what is done.
	Kind OperationKind
	// Device is what it is done to, as it shall be.
	Device Device
}

// OperationKind is a kind of [Operation].
type OperationKind string

// operationKind is a kind as data.
type operationKind struct {
	name OperationKind
	// due are the devices that it has to be done to, as they shall be.
	due func(Desired, Actual) []Device
	// text says for people what is done to the device.
	text func(Device) string
	// reason is that of the finding after it failed.
	reason string
}

// operationKinds are all kinds. What is due of a device is done in this order.
var operationKinds = []operationKind{
	resizeDisk,
	setLink,
}

// OperationKinds are all kinds of operations.
func OperationKinds() []OperationKind {
	var all []OperationKind
	for _, k := range operationKinds {
		all = append(all, k.name)
	}
	return all
}

// changing are the devices that are there and differ from the desired ones in what
// differ compares.
func changing(differ func(want, have Device) bool) func(Desired, Actual) []Device {
	return func(d Desired, a Actual) []Device {
		var all []Device
		for _, want := range d.Devices {
			if have, ok := find(a.Devices, want.Alias); ok && differ(want, have) {
				all = append(all, want)
			}
		}
		return all
	}
}

// String says for people what is done.
func (o Operation) String() string {
	for _, k := range operationKinds {
		if k.name == o.Kind {
			return k.text(o.Device)
		}
	}
	return fmt.Sprintf("%s %s", o.Kind, o.Device.Name)
}

// Key identifies the operation: what became of an attempt is kept by it.
func (o Operation) Key() OperationKey { return OperationKey{o.Kind, o.Device.Alias} }

// OperationKey identifies an operation among those of a domain.
type OperationKey struct {
	// Kind is what is done.
	Kind OperationKind
	// Alias is that of the device that it is done to.
	Alias string
}

// Progress is how far an operation is. The zero value: it is not under way, and the
// last attempt, if there was one, succeeded.
type Progress struct {
	// UnderWay says that it is being done.
	UnderWay bool
	// Fault is why the last attempt failed.
	Fault error
	// Failures is how many attempts failed in a row.
	Failures int
	// RetryAt is when the next attempt may be made.
	RetryAt time.Time
}

// Operations is what became of the operations on a domain. The zero value: none was
// begun. Its methods return a copy.
type Operations map[OperationKey]Progress

// Begin notes that the operation is under way.
func (all Operations) Begin(o Operation) Operations {
	out := all.copied()
	p := out[o.Key()]
	p.UnderWay = true
	out[o.Key()] = p
	return out
}

// End notes that the attempt at the operation is over, and why it failed. Nil: it
// succeeded.
func (all Operations) End(o Operation, err error, now time.Time) Operations {
	out := all.copied()
	if err == nil {
		delete(out, o.Key())
		return out
	}
	n := all[o.Key()].Failures + 1
	out[o.Key()] = Progress{Fault: fmt.Errorf("%s: %w", o, err), Failures: n, RetryAt: now.Add(Backoff(n))}
	return out
}

func (all Operations) copied() Operations {
	out := make(Operations, len(all)+1)
	maps.Copy(out, all)
	return out
}

// busy says that an operation on the device is under way.
func (all Operations) busy(alias string) bool {
	for k, p := range all {
		if k.Alias == alias && p.UnderWay {
			return true
		}
	}
	return false
}

// operate adds to a plan the operations that are due, one for each device. A guest that
// is to power off keeps what it has, and one that moves does until it has moved.
func (p *Plan) operate(d Desired, a Actual) {
	if !a.Domain.exists() || d.stops() || a.moves() {
		return
	}
	begun := map[string]bool{}
	for _, k := range operationKinds {
		for _, device := range k.due(d, a) {
			o := Operation{k.name, device}
			if begun[device.Alias] || a.Operations.busy(device.Alias) {
				continue
			}
			if wait := a.Operations[o.Key()].RetryAt.Sub(a.Now); wait > 0 {
				p.recheck(wait)
				continue
			}
			begun[device.Alias] = true
			p.Operations = append(p.Operations, o)
		}
	}
}

// operationFails finds an operation that is due and has failed.
func operationFails(d Desired, a Actual) (*vmi.Finding, time.Duration) {
	if !a.Domain.exists() {
		return nil, 0
	}
	for _, k := range operationKinds {
		for _, device := range k.due(d, a) {
			if fault := a.Operations[Operation{k.name, device}.Key()].Fault; fault != nil {
				return &vmi.Finding{Reason: k.reason, Message: fault.Error()}, 0
			}
		}
	}
	return nil, 0
}
