package vm_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func sparse(options ...vmitest.Option) *vmi.VirtualMachine {
	v := vmitest.NewVM(vmi.RunAlways, options...)
	v.Namespace, v.Name, v.UID, v.Generation = "ns", "vm", "vm-uid", 7
	v.Spec.Template.Spec.Domain.Firmware = nil
	return v
}

// attached leaves the interface of the VMI to the defaults.
func attached(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachPodInterface = nil }

// router is a binding of an embedder whose guests have the address of their pod.
type router struct{ network.Binding }

func (router) Serves(spec vmi.Interface) bool {
	return spec.Binding != nil && spec.Binding.Name == "router"
}
func (router) Traits() network.Traits { return network.Traits{TakesOver: true} }

// routed has an interface with that binding.
func routed(v *vmi.VirtualMachineInstance) {
	vmitest.WithBridge("default")(v)
	i := &v.Spec.Domain.Devices.Interfaces[0]
	i.InterfaceBinding, i.Binding = vmi.InterfaceBinding{}, &vmi.PluginBinding{Name: "router"}
}

func TestAVMIHasTheIdentityOfItsVM(t *testing.T) {
	for name, c := range map[string]struct {
		vm      *vmi.VirtualMachine
		profile defaults.Profile
		macs    []string
		among   []network.Binding
	}{
		"an interface behind masquerade":          {sparse(vmitest.WithMasquerade("default")), defaults.Profile{}, []string{network.MAC("vm-uid", "default")}, nil},
		"an interface bridged to the pod network": {sparse(vmitest.WithBridge("default")), defaults.Profile{}, []string{""}, nil},
		"an interface bridged to another network": {sparse(vmitest.WithMultus("lan", "lan")), defaults.Profile{}, []string{network.MAC("vm-uid", "lan")}, nil},
		"none, where bridge is the default":       {sparse(attached), defaults.Profile{}, []string{""}, nil},
		"none, where masquerade is the default":   {sparse(attached), defaults.Profile{Binding: defaults.Masquerade}, []string{network.MAC("vm-uid", "default")}, nil},
		"an embedder's binding that takes over":   {sparse(routed), defaults.Profile{}, []string{""}, append(network.Bindings(), router{})},
		"the same without the embedder":           {sparse(routed), defaults.Profile{}, []string{network.MAC("vm-uid", "default")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.vm.DeepCopy()
			v := vm.Instance(c.vm, c.profile, c.among)
			require.Equal(t, before, c.vm, "the user's object is not changed")
			var macs []string
			for _, n := range v.Spec.Domain.Devices.Interfaces {
				macs = append(macs, n.MacAddress)
			}
			require.Equal(t, c.macs, macs)
			require.Equal(t, defaults.UUID("vm-uid"), v.Spec.Domain.Firmware.UUID)
			require.NotEmpty(t, v.Spec.Domain.Firmware.Serial)
			require.NotEqual(t, string(v.Spec.Domain.Firmware.UUID), v.Spec.Domain.Firmware.Serial)
			other := c.vm.DeepCopy()
			other.UID = "another"
			require.NotEqual(t, v.Spec.Domain.Firmware, vm.Instance(other, c.profile, nil).Spec.Domain.Firmware)
		})
	}
}

func TestAVMIHasTheIdentityThatItsUserChose(t *testing.T) {
	v := sparse(vmitest.WithMasquerade("default"))
	v.Spec.Template.Spec.Domain.Firmware = &vmi.Firmware{UUID: "6a1a24a1-4061-4607-8bf4-a3963d0c5895", Serial: "mine"}
	v.Spec.Template.Spec.Domain.Devices.Interfaces[0].MacAddress = "02:00:00:00:00:01"
	i := vm.Instance(v, defaults.Profile{}, nil)
	require.Equal(t, v.Spec.Template.Spec.Domain.Firmware, i.Spec.Domain.Firmware)
	require.Equal(t, "02:00:00:00:00:01", i.Spec.Domain.Devices.Interfaces[0].MacAddress)
}

func TestAttackATemplateBringsNoMetadataOfPodvisorToAVMI(t *testing.T) {
	v := sparse()
	v.Spec.Template.ObjectMeta = metav1.ObjectMeta{
		Name: "other", UID: "u", Finalizers: []string{"example.com/mine"}, OwnerReferences: []metav1.OwnerReference{{Kind: "Node"}},
		Labels: map[string]string{"mine": "yes"}, Annotations: map[string]string{vmi.VMGenerationAnnotation: "99", "mine": "yes"},
	}
	for _, k := range vmi.ReservedLabels() {
		v.Spec.Template.ObjectMeta.Labels[k] = "x"
	}
	i := vm.Instance(v, defaults.Profile{}, nil)
	require.Equal(t, metav1.ObjectMeta{
		Namespace: "ns", Name: "vm", Labels: map[string]string{"mine": "yes"},
		Annotations: map[string]string{vmi.VMGenerationAnnotation: "7", "mine": "yes"}, Finalizers: []string{vmi.Finalizer},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)},
	}, i.ObjectMeta)
}
