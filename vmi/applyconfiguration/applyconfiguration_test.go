package applyconfiguration_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/applyconfiguration"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// made makes the configuration of each kind.
var made = map[string]client.ApplyConfiguration{
	"KubeVirt":                         applyconfiguration.KubeVirt("a", "b"),
	"VirtualMachine":                   applyconfiguration.VirtualMachine("a", "b"),
	"VirtualMachineInstance":           applyconfiguration.VirtualMachineInstance("a", "b"),
	"VirtualMachineInstanceMigration":  applyconfiguration.VirtualMachineInstanceMigration("a", "b"),
	"VirtualMachineInstanceReplicaSet": applyconfiguration.VirtualMachineInstanceReplicaSet("a", "b"),
}

func TestEveryServedKindOfTheGroupHasAConfigurationThatNamesItsKindAndNothingElse(t *testing.T) {
	for _, k := range kinds.All() {
		a := made[k.Kind]
		if !k.Served() || k.Group != vmi.GroupName {
			require.Nil(t, a, k.Kind)
			continue
		}
		require.NotNil(t, a, "%s is served, and has no apply configuration", k.Kind)
		got, err := json.Marshal(a)
		require.NoError(t, err)
		require.JSONEq(t, `{"apiVersion": "`+k.GroupVersion().String()+`", "kind": "`+k.Kind+`", "metadata": {"name": "a", "namespace": "b"}}`, string(got))
	}
}

func TestOnlyWhatIsSetIsSentZeroValuesToo(t *testing.T) {
	a := applyconfiguration.VirtualMachineInstanceSpec().
		WithDomain(applyconfiguration.DomainSpec().WithDevices(applyconfiguration.Devices().WithAutoattachPodInterface(false))).
		WithNetworks(applyconfiguration.Network().WithName("n").WithPod(applyconfiguration.PodNetwork())).
		WithTerminationGracePeriodSeconds(0)
	got, err := json.Marshal(a)
	require.NoError(t, err)
	require.JSONEq(t, `{"domain": {"devices": {"autoattachPodInterface": false}}, "networks": [{"name": "n", "pod": {}}], "terminationGracePeriodSeconds": 0}`, string(got))
}

func TestWhatAManagerAppliedIsExtracted(t *testing.T) {
	c, err := client.New(fake.New().Config())
	require.NoError(t, err)
	vms := c.VirtualMachines("default")
	template := func(disks ...string) *applyconfiguration.VirtualMachineInstanceTemplateSpecApplyConfiguration {
		devices := applyconfiguration.Devices()
		for _, d := range disks {
			devices.WithDisks(applyconfiguration.Disk().WithName(d))
		}
		return applyconfiguration.VirtualMachineInstanceTemplateSpec().WithSpec(
			applyconfiguration.VirtualMachineInstanceSpec().WithDomain(applyconfiguration.DomainSpec().WithDevices(devices)))
	}
	first := applyconfiguration.VirtualMachine("web", "default").WithSpec(applyconfiguration.VirtualMachineSpec().WithRunStrategy(vmi.RunHalted).WithTemplate(template("a")))
	_, err = vms.Apply(t.Context(), first, metav1.ApplyOptions{FieldManager: "first"})
	require.NoError(t, err)
	second := applyconfiguration.VirtualMachine("web", "default").WithSpec(applyconfiguration.VirtualMachineSpec().WithTemplate(template("b")))
	vm, err := vms.Apply(t.Context(), second, metav1.ApplyOptions{FieldManager: "second"})
	require.NoError(t, err)
	require.Len(t, vm.Spec.Template.Spec.Domain.Devices.Disks, 2)

	got, err := applyconfiguration.ExtractVirtualMachine(vm, "second")
	require.NoError(t, err)
	require.Equal(t, second, got)
	got.Spec.Template = nil
	vm, err = vms.Apply(t.Context(), got, metav1.ApplyOptions{FieldManager: "second"})
	require.NoError(t, err)
	require.Len(t, vm.Spec.Template.Spec.Domain.Devices.Disks, 1)
}
