package domain_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/vmi"
)

func ExampleBuild() {
	instance := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: "1"}}
	memory := resource.MustParse("512Mi")
	instance.Spec.Domain.Memory = &vmi.Memory{Guest: &memory}

	d, err := domain.Build(instance, domain.Host{KVM: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Type, d.Name, d.Memory.Value, d.Memory.Unit)
	// Output: kvm default_hello 536870912 b
}

// sharedMemory gives a guest whose VMI has an annotation a piece of memory that a program
// beside it has too. The device is a part of another program than this package.
var sharedMemory = domain.Part{
	Name: "shared memory",
	Build: func(d *domain.Draft) error {
		if name := d.VMI.Annotations["example.com/shared-memory"]; name != "" {
			d.Domain.Devices.Shmems = []libvirtxml.DomainShmem{{
				Name:  name,
				Model: &libvirtxml.DomainShmemModel{Type: "ivshmem-plain"},
				Size:  &libvirtxml.DomainShmemSize{Value: 4, Unit: "M"},
			}}
		}
		return nil
	},
	Devices: func(l *libvirtxml.DomainDeviceList) []domain.Device {
		var all []domain.Device
		for i := range l.Shmems {
			all = append(all, domain.Device{Name: "the shared memory", Address: &l.Shmems[i].Address, At: domain.Spare(0)})
		}
		return all
	},
}

// A device of another program is a [domain.Part] beside those of this package. It brings
// its own place on the bus, which is the same in each domain that has it.
func ExamplePart() {
	instance := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "hello", UID: "1", Annotations: map[string]string{"example.com/shared-memory": "frames"},
	}}
	memory := resource.MustParse("512Mi")
	instance.Spec.Domain.Memory = &vmi.Memory{Guest: &memory}

	d, err := domain.Build(instance, domain.Host{KVM: true, Parts: append(domain.Parts(), sharedMemory)})
	if err != nil {
		fmt.Println(err)
		return
	}
	device := d.Devices.Shmems[0]
	fmt.Printf("%s at slot %#x, function %d\n", device.Name, *device.Address.PCI.Slot, *device.Address.PCI.Function)
	// Output: frames at slot 0x12, function 4
}
