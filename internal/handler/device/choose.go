package device

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/podvisor/podvisor/internal/kvm"
)

// Choice says whether KVM is offered.
type Choice string

// The choices.
const (
	// Auto offers KVM if guests can run on it.
	Auto Choice = "auto"
	// Yes offers it untried, if the kernel has it.
	Yes Choice = "yes"
	// No does not offer it.
	No Choice = "no"
)

// Offer returns the devices of the node that shall be offered to pods: all that
// [Find] finds but KVM, for which the choice is asked and, if need be, the device
// itself. The log says how that came out.
func Offer(sysfs string, choice Choice, log *slog.Logger) ([]Device, error) {
	found, err := Find(sysfs)
	if err != nil {
		return nil, err
	}
	return choose(found, choice, func(path string) (bool, string) { return kvm.Usable(path, "/proc", sysfs) }, log)
}

// choose leaves out KVM if it shall not be offered.
func choose(found []Device, c Choice, try func(path string) (bool, string), log *slog.Logger) ([]Device, error) {
	if c != Auto && c != Yes && c != No {
		return nil, fmt.Errorf("whether to offer KVM is %s, %s or %s, not %q", Auto, Yes, No, c)
	}
	isKVM := func(d Device) bool { return d.Name == KVM }
	i := slices.IndexFunc(found, isKVM)
	usable, why := c == Yes, "it is configured so"
	switch {
	case i < 0:
		usable, why = false, "the kernel has no KVM"
	case c == Auto:
		usable, why = try(found[i].Path)
	}
	log.Info("decided whether to offer KVM", "offer", usable, "why", why)
	if usable {
		return found, nil
	}
	return slices.DeleteFunc(slices.Clone(found), isKVM), nil
}
