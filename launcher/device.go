package launcher

import (
	"fmt"
	"slices"
	"strings"
)

// Device is a device of a domain that may come and go while the domain runs.
type Device struct {
	// Alias identifies it within the domain.
	Alias string
	// Name is what the spec calls it, with its kind, for people: "disk data".
	Name string
	// SizeBytes is the size of a disk. 0: it has none, or it is not known.
	SizeBytes int64
	// Link is the state of the link of an interface, up or down. Empty: it has none.
	Link string
}

// difference is what makes a domain have the devices that are desired.
type difference struct {
	// Attach are desired and not there.
	Attach []Device
	// Detach are there and not desired.
	Detach []Device
}

// compare returns the difference between the devices that are desired and those
// that are there. Devices are compared by their aliases; the order has no meaning.
func compare(desired, actual []Device) difference {
	var d difference
	for _, want := range desired {
		if _, ok := find(actual, want.Alias); !ok {
			d.Attach = append(d.Attach, want)
		}
	}
	for _, have := range actual {
		if _, ok := find(desired, have.Alias); !ok {
			d.Detach = append(d.Detach, have)
		}
	}
	return d
}

func find(all []Device, alias string) (Device, bool) {
	i := slices.IndexFunc(all, func(d Device) bool { return d.Alias == alias })
	if i < 0 {
		return Device{}, false
	}
	return all[i], true
}

// Empty says that there is no difference.
func (d difference) Empty() bool { return len(d.Attach)+len(d.Detach) == 0 }

// String lists the differences for people.
func (d difference) String() string {
	var parts []string
	for _, p := range []struct {
		verb    string
		devices []Device
	}{{"not attached", d.Attach}, {"not detached", d.Detach}} {
		for _, device := range p.devices {
			parts = append(parts, fmt.Sprintf("%s is %s", device.Name, p.verb))
		}
	}
	return strings.Join(parts, ", ")
}
