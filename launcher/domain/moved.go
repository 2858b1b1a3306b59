package domain

import (
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// Moved is the domain of a guest that moves here, as XML: source, which libvirt describes it by
// where it runs, with what belongs to the host taken from here, which is what [Build] makes of the
// same instance in this pod. That are the files and sockets of its devices, its tap devices, and
// where its processors and its memory are. All else stays as it is, also what this release does
// not know: the guest runs and must find the same.
//
// A disk that bypasses the page cache where it runs, and cannot here, is cached in the way that
// is the same for the guest.
func Moved(source string, here *libvirtxml.Domain) (string, error) {
	moved, err := parseXML(source)
	if err != nil {
		return "", fmt.Errorf("read the XML of the domain that moves: %w", err)
	}
	text, err := here.Marshal()
	if err != nil {
		return "", fmt.Errorf("write the domain of this pod as XML: %w", err)
	}
	own, err := parseXML(text)
	if err != nil {
		return "", fmt.Errorf("read the XML of the domain of this pod: %w", err)
	}
	moved.take(own, "cputune", "numatune")
	moved.first("vcpu").set("cpuset", own.first("vcpu").attr("cpuset"))
	for _, file := range []string{"loader", "nvram", "kernel", "initrd"} {
		for _, e := range moved.all("os", file) {
			e.text = own.first("os", file).text
		}
	}
	for _, k := range placed {
		for _, e := range moved.all("devices", k.name) {
			at := own.find(k, e)
			if at == nil {
				return "", fmt.Errorf("%s %s of the guest that moves is not in the domain of this pod: %w", k.name, k.key(e), vmi.ErrInvalid)
			}
			if k.adapt != nil {
				k.adapt(e, at)
			}
			e.take(at, k.takes...)
		}
	}
	for _, e := range moved.all("devices", "console") {
		e.ofSerial(own)
	}
	return moved.String(), nil
}

// placedKind is a kind of device of which a part belongs to the host.
type placedKind struct {
	// name is that of the elements, and key what identifies one.
	name string
	key  func(*element) string
	// takes are the names of the children that belong to the host.
	takes []string
	// adapt changes what else does. Nil: nothing.
	adapt func(moved, own *element)
}

// placed are the kinds of devices that libvirt describes by what of the host they use.
var placed = []placedKind{
	{"disk", alias, []string{"source", "backingStore"}, disksCache},
	{"interface", alias, []string{"source", "target"}, func(moved, own *element) { moved.set("type", own.attr("type")) }},
	{"serial", inTarget("port"), []string{"source", "log"}, nil},
	{"channel", inTarget("name"), []string{"source"}, nil},
	{"filesystem", inTarget("dir"), []string{"source"}, nil},
	{"graphics", func(e *element) string { return e.attr("type") }, []string{"listen"}, func(moved, own *element) {
		moved.set("socket", own.first("listen").attr("socket"))
	}},
}

func alias(e *element) string { return e.first("alias").attr("name") }

func inTarget(attr string) func(*element) string {
	return func(e *element) string { return e.first("target").attr(attr) }
}

// find is the device of the domain e that is the same as another one's. Nil: there is none.
func (e *element) find(k placedKind, device *element) *element {
	for _, own := range e.all("devices", k.name) {
		if k.key(own) == k.key(device) {
			return own
		}
	}
	return nil
}

// disksCache keeps how a disk is cached, unless the page cache cannot be bypassed here.
func disksCache(moved, own *element) {
	moved.set("type", own.attr("type"))
	driver, here := moved.first("driver"), own.first("driver").attr("cache")
	if driver.attr("cache") == string(vmi.DiskCacheNone) && here != "" && here != string(vmi.DiskCacheNone) {
		driver.set("cache", string(vmi.DiskCacheWriteBack))
		driver.set("io", "")
	}
}

// ofSerial makes a console that is a serial port the one here: libvirt describes the port by
// both.
func (e *element) ofSerial(own *element) {
	if e.first("target").attr("type") != "serial" {
		return
	}
	for _, serial := range own.all("devices", "serial") {
		if inTarget("port")(serial) == inTarget("port")(e) {
			e.set("type", serial.attr("type"))
			e.set("tty", "")
			e.take(serial, "source", "log")
		}
	}
}
