package network

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// RememberTable is the routing table that remembers the routes of the pod's
// links while those cannot have any. No rule leads to it.
const RememberTable = 7510

// Input is what a plan is made of.
type Input struct {
	// Instance is the VMI, with defaults applied.
	Instance *vmi.VirtualMachineInstance
	// State is the pod's network namespace: bound or not or anything between.
	State State
	// Owner is the launcher's user, as the host sees it.
	Owner Owner
	// Links are the names of the pod's links, by the name of the network that they
	// belong to. A network without one has that of [PodLinkName].
	Links map[string]string
	// Bindings are the bindings that interfaces may have. If several say that they
	// bound an interface, the first one counts. Nil: [Bindings].
	Bindings []Binding
}

// Plan decides how the interfaces of a VMI are bound to the networks of its pod.
// An error names every fault at once. It wraps [vmi.ErrInvalid] if the VMI's spec
// is wrong, alone or for this pod; otherwise the pod is not (yet) as it must be.
//
// The plan for a namespace that an earlier plan was applied to, even in part, is
// that plan: also if the instance has another binding now, because a default
// changed meanwhile. A guest may be using what is there.
func Plan(in Input) (Config, error) {
	if in.Bindings == nil {
		in.Bindings = Bindings()
	}
	interfaces, err := in.interfaces()
	if err != nil {
		return Config{}, err
	}
	var (
		m      merger
		faults []error
	)
	for _, i := range interfaces {
		part, err := i.choose(in.Bindings).Plan(i)
		if err != nil {
			faults = append(faults, fmt.Errorf("bind interface %s: %w", i.Spec.Name, err))
			continue
		}
		faults = append(faults, m.add(i, part))
	}
	if err := errors.Join(faults...); err != nil {
		return Config{}, err
	}
	return m.config, nil
}

// invalid is a fault of the spec.
func invalid(at *field.Path, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", vmi.ErrInvalid, at, fmt.Sprintf(format, args...))
}
