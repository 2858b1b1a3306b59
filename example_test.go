package podvisor_test

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

func Example() {
	var v vmi.VirtualMachineInstance
	manifest, err := os.ReadFile("examples/vmi-hello.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(manifest, &v)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	v.Namespace = "default"

	// What virt-controller creates. No cluster is needed.
	instance := defaults.Instance(&v, defaults.Profile{})
	p, err := pod.Render(instance, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:1"}})
	fmt.Println(p.Name, err)

	// What virt-launcher starts. No libvirt is needed: what was observed of disks
	// and network is an argument.
	d, err := domain.Build(instance, domain.Host{
		KVM: true,
		Disks: map[string]domain.Disk{
			"root":      {Attachment: storage.Attachment{Path: "/disks/root.qcow2", Format: storage.QCOW2}, DirectIO: true},
			"cloudinit": {Attachment: storage.Attachment{Path: "/disks/seed.iso", Format: storage.Raw}},
		},
		Interfaces: []network.Attachment{{Name: "default", Tap: "tap0", MAC: "02:00:00:00:00:01"}},
	})
	fmt.Println(d.Name, d.Devices.Disks[0].Source.File.File, err)
	// Output:
	// virt-launcher-hello-seoc8 <nil>
	// default_hello /disks/root.qcow2 <nil>
}
