package instancetype_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

func ExampleApply() {
	small := &instancetype.VirtualMachineInstancetypeSpec{
		CPU:    instancetype.CPUInstancetype{Guest: 4},
		Memory: instancetype.MemoryInstancetype{Guest: resource.MustParse("2Gi")},
	}
	linux := &instancetype.VirtualMachinePreferenceSpec{
		CPU:     &instancetype.CPUPreferences{PreferredCPUTopology: new(instancetype.TopologyCores)},
		Devices: &instancetype.DevicePreferences{PreferredDiskBus: vmi.DiskBusVirtio},
	}
	template := &vmi.VirtualMachineInstanceSpec{Volumes: []vmi.Volume{{Name: "root"}}}
	spec, _ := instancetype.Apply(template, small, linux, defaults.Profile{})
	fmt.Println(spec.Domain.CPU.Cores, spec.Domain.Memory.Guest, spec.Domain.Devices.Disks[0].Disk.Bus)

	template.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("1Gi"))}
	_, conflicts := instancetype.Apply(template, small, linux, defaults.Profile{})
	fmt.Println(conflicts[0].Field)
	// Output:
	// 4 2Gi virtio
	// spec.domain.memory.guest
}
