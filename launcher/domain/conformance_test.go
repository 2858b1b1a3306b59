package domain

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// conformance is where VMIs and the domains that KubeVirt makes of them are, if they
// are here.
const conformance = "../../../shared/conformance"

// differences are facts of KubeVirt's domains that ours do not have, by a part of
// them, and why.
var differences = []struct{ fact, why string }{
	{"/devices/hostdev@", "KubeVirt's domain was made where the pod had no function for the binding sriov"},
	{"/uuid", "theirs leaves the UUID of the domain to libvirt"},
	{"alias@name", "aliases of interfaces have a part of their own, so that a disk may have the same name"},
	{"backingStore", "every disk says that it has no backing file"},
	{"/interface/target", "interfaces are on taps that the handler has made"},
	{"/controller[pci", "the ports are always there, so that no device moves when another is added"},
	{"/address", "every device has an address of its own"},
	{"driver@cache", "the cache follows from the volume, which theirs had not looked at"},
	{"source@", "files have our names"},
	{"/on_", "theirs leaves it to libvirt's defaults, which are the same"},
}

// facts are what a domain says, one a line, in no order: its own texts, paths and
// what a system may choose itself are left out.
func facts(t *testing.T, text []byte) map[string]bool {
	t.Helper()
	type element struct {
		XMLName  xml.Name
		Attrs    []xml.Attr `xml:",any,attr"`
		Text     string     `xml:",chardata"`
		Children []element  `xml:",any"`
	}
	var root element
	require.NoError(t, xml.Unmarshal(text, &root))
	out := map[string]bool{}
	attribute := func(e element, child, name string) string {
		for _, c := range e.Children {
			for _, a := range c.Attrs {
				if c.XMLName.Local == child && a.Name.Local == name {
					return a.Value
				}
			}
		}
		return ""
	}
	var walk func(e element, at string)
	walk = func(e element, at string) {
		if e.XMLName.Local == "metadata" || e.XMLName.Local == "sysinfo" {
			return
		}
		count := map[string]int{}
		for _, a := range e.Attrs {
			value := a.Value
			if strings.HasPrefix(value, "/") {
				value = filepath.Base(value)
			}
			if e.XMLName.Local != "memory" && a.Name.Space == "" && a.Name.Local != "xmlns" {
				out[fmt.Sprintf("%s@%s = %s", at, a.Name.Local, value)] = true
			}
		}
		if s := strings.TrimSpace(e.Text); s != "" {
			out[at+" = "+s] = true
		}
		for _, c := range e.Children {
			label := at + "/" + c.XMLName.Local
			if name := attribute(c, "target", "dev"); c.XMLName.Local == "disk" && name != "" {
				label += "[" + name + "]"
			} else if c.XMLName.Local == "controller" {
				label += "[" + attribute(element{Children: []element{c}}, "controller", "type") + attribute(element{Children: []element{c}}, "controller", "index") + "]"
			} else if count[label]++; count[label] > 1 {
				label += strconv.Itoa(count[label])
			}
			walk(c, label)
		}
	}
	walk(root, "")
	return out
}

// theirs is the host of KubeVirt's records: container disks are overlays of QCOW2.
func theirs(v *vmi.VirtualMachineInstance) Host {
	h := host(v, func(h *Host) { h.ConsoleLog, h.PrivateDir = "/private/virt-serial0-log", "/private" })
	h.CPUs = []HostCPU{{ID: 4, Core: 4}, {ID: 5, Core: 5}}
	for _, volume := range v.Spec.Volumes {
		d := h.Disks[volume.Name]
		switch {
		case volume.ContainerDisk != nil || volume.Ephemeral != nil:
			d.Format, d.Source = storage.QCOW2, storage.Overlay{Base: storage.Image{Path: "/images/" + volume.Name, Format: storage.QCOW2}}
		case volume.EmptyDisk != nil:
			d.Format = storage.QCOW2
		}
		h.Disks[volume.Name] = d
	}
	for i := range h.Interfaces {
		h.Interfaces[i] = network.Attachment{Name: h.Interfaces[i].Name, Tap: fmt.Sprint("tap", i)}
	}
	h.HostDevices = map[string]string{"PCIDEVICE_EXAMPLE_COM_FUNCTION": "0000:81:02.0"}
	return h
}

func TestDomainsAreKubeVirts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(conformance, "domain", "*.xml"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("the conformance data are not here")
	}
	used, built := map[string]bool{}, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".xml")
		data, err := os.ReadFile(filepath.Join(conformance, "defaulted", name+".yaml"))
		require.NoError(t, err)
		var v vmi.VirtualMachineInstance
		require.NoError(t, yaml.Unmarshal(data, &v))
		v.UID = "11111111-1111-4111-8111-111111111111"
		if c := v.Spec.Domain.CPU; c != nil && c.DedicatedCPUPlacement {
			t.Logf("%s: not compared: the CPUs of its pod are not known", name)
			continue
		}
		d, err := Build(&v, theirs(&v))
		if err != nil {
			require.ErrorIs(t, err, vmi.ErrInvalid)
			t.Logf("%s: not built: %.150v", name, err)
			continue
		}
		built++
		text, err := d.Marshal()
		require.NoError(t, err)
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		a, b := facts(t, want), facts(t, []byte(text))
		equal := 0
		for _, f := range slices.Sorted(maps.Keys(a)) {
			if b[f] {
				equal++
				continue
			}
			i := slices.IndexFunc(differences, func(d struct{ fact, why string }) bool { return strings.Contains(f, d.fact) })
			if i < 0 {
				t.Errorf("%s: KubeVirt's domain has %s", name, f)
				continue
			}
			used[differences[i].fact] = true
		}
		for _, f := range slices.Sorted(maps.Keys(b)) {
			i := slices.IndexFunc(differences, func(d struct{ fact, why string }) bool { return strings.Contains(f, d.fact) })
			if a[f] {
				continue
			}
			if i < 0 {
				t.Errorf("%s: our domain has %s", name, f)
				continue
			}
			used[differences[i].fact] = true
		}
		t.Logf("%s: %d of %d facts equal", name, equal, len(a))
	}
	for _, d := range differences {
		if !used[d.fact] {
			t.Errorf("no domain differs in %s", d.fact)
		}
	}
	require.Positive(t, built)
}
