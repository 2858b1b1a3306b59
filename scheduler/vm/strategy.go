package vm

import (
	"github.com/podvisor/podvisor/vmi"
)

// intent is what is to become of the VMI.
type intent int

const (
	keep  intent = iota // it stays, or stays absent
	start               // one is made
	stop                // it is deleted
)

// want is what the run strategy and the first request make of the VMI. It does not
// know the back-off.
func want(o Observed, requests []vmi.StateChangeRequest) intent {
	s := o.state()
	asked := first(requests)
	switch o.VM.Spec.Strategy() {
	case vmi.RunAlways:
		switch {
		case s == absent:
			return start
		case s == succeeded, s == failed, asked == vmi.StopRequest:
			return stop
		}
	case vmi.RunRerunOnFailure:
		switch {
		case s == absent && (asked == vmi.StartRequest || renewed(o)):
			return start
		case s == succeeded, s == failed, s == alive && asked == vmi.StopRequest:
			return stop
		}
	case vmi.RunManual:
		switch {
		case s == absent && asked == vmi.StartRequest:
			return start
		case s == alive && asked == vmi.StopRequest:
			return stop
		case s != absent && s != alive && asked != "":
			return stop // what ended makes room for the start, or was to be deleted
		}
	case vmi.RunHalted:
		if s != absent {
			return stop
		}
	case vmi.RunOnce:
		if s == absent {
			return start
		}
	}
	return keep
}

// renewed says that the run strategy has changed since it was last acted upon. It was if
// the VMI is of the spec's generation, also if the status does not say so yet.
func renewed(o Observed) bool {
	v := o.own()
	return o.VM.Status.RunStrategy != o.VM.Spec.Strategy() && (v == nil || vmi.StartGeneration(v) != o.VM.Generation)
}

// first is the only request that counts, or "".
func first(requests []vmi.StateChangeRequest) vmi.StateChange {
	if len(requests) == 0 {
		return ""
	}
	return requests[0].Action
}

// pending are the requests that are still to be done: a stop is done when the VMI
// that it names is gone, a start when a VMI is alive. What the run strategy does not
// know is dropped: a VM that is Halted starts only paused, by a request, and one that
// is to run Once takes none.
func pending(o Observed) []vmi.StateChangeRequest {
	requests := o.VM.Status.StateChangeRequests
	for len(requests) > 0 && done(o, requests[0]) {
		requests = requests[1:]
	}
	return requests
}

func done(o Observed, r vmi.StateChangeRequest) bool {
	v, strategy := o.own(), o.VM.Spec.Strategy()
	switch r.Action {
	case vmi.StopRequest:
		return v == nil || r.UID == nil || *r.UID != v.UID || strategy == vmi.RunOnce
	case vmi.StartRequest:
		return o.state() == alive && v.DeletionTimestamp == nil ||
			strategy == vmi.RunHalted && r.Data[pausedKey] != "true" || strategy == vmi.RunOnce
	}
	return true
}

// pausedKey is the detail of a start request that has the guest start paused.
const pausedKey = "paused"

// startsPaused says that the first request asks for a guest that starts paused.
func startsPaused(requests []vmi.StateChangeRequest) bool {
	return first(requests) == vmi.StartRequest && requests[0].Data[pausedKey] == "true"
}
