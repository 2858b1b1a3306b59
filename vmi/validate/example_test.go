package validate_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func ExampleInstance() {
	v := vmitest.New(vmitest.WithMasquerade("default"), vmitest.WithMemory("512Ki"))
	v.Spec.Domain.CPU = &vmi.CPU{Cores: 500}
	for _, fault := range validate.Instance(defaults.Instance(v, defaults.Profile{}), validate.User{}, validate.Limits{}) {
		fmt.Println(fault)
	}
	// Output:
	// spec.domain.memory.guest: Invalid value: "512Ki": a guest needs at least 1M
	// spec.domain.cpu: Invalid value: "1 sockets × 500 cores × 1 threads": must not be more than 255 processors
}

// A webhook asks with what it has read from its cache, a controller asks again
// before it begins.
func ExampleMigrationOf() {
	running := vmitest.New()
	running.Status.Phase = vmi.PhaseRunning
	m := &vmi.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{Name: "away", Namespace: running.Namespace}, Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: running.Name},
	}
	earlier := m.DeepCopy()
	earlier.Name = "earlier"
	faults := append(validate.Migration(m, validate.User{}), validate.MigrationOf(m, running, *earlier)...)
	fmt.Println(validate.Error(faults))
	// Output:
	// invalid: spec.vmiName: Invalid value: "testvmi": in-flight migration detected. The migration "earlier" of this VMI has not ended: wait for it, or delete it to cancel it
}

// The claim of a request is checked with the template when the VirtualMachine is
// admitted, and with the VMI that runs by its owner.
func ExampleVolumeRequests() {
	running := vmitest.New(vmitest.WithEmptyDisk("data", "1Gi"))
	v := &vmi.VirtualMachine{Status: vmi.VirtualMachineStatus{VolumeRequests: []vmi.VolumeRequest{{AddVolumeOptions: &vmi.AddVolumeOptions{
		Name: "data", Disk: &vmi.Disk{Disk: &vmi.DiskTarget{Bus: vmi.DiskBusSCSI}}, VolumeSource: &vmi.HotplugVolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "data"}},
	}}}}}
	fmt.Println(validate.Error(validate.VolumeRequests(v, running, validate.Limits{})))
	// Output:
	// invalid: Status.volumeRequests: Invalid value: "data": status.volumeRequests[0]: the running VMI has another volume of this name: choose another name, or remove that volume first
}
