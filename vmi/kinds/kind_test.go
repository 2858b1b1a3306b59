package kinds_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

func TestEveryKindOfTheModelHasARow(t *testing.T) {
	t.Parallel()
	var listed []schema.GroupVersionKind
	var schemas []string
	names := map[string]bool{}
	for _, k := range kinds.All() {
		require.NotContains(t, listed, k.GroupVersionKind)
		require.False(t, names[k.Kind], "two groups have a kind %s: fields are looked up by its name", k.Kind)
		names[k.Kind] = true
		_, untyped := served.UntypedKind(k.Kind)
		require.False(t, untyped, "%s has a type", k.Kind)
		listed = append(listed, k.GroupVersionKind)
		if k.Served() {
			schemas = append(schemas, "../../manifests/crds/"+k.Group+"_"+k.Plural+".yaml")
		}
	}
	for _, d := range vmi.Definitions() {
		require.Contains(t, listed, d.GroupVersionKind)
	}
	// Kinds of other groups are found by their schemas.
	installed, err := filepath.Glob("../../manifests/crds/*.yaml")
	require.NoError(t, err)
	require.ElementsMatch(t, installed, schemas)
}

func TestEveryRowIsComplete(t *testing.T) {
	t.Parallel()
	c := kinds.Cluster{By: validate.User{Kind: validate.Controller}}
	for _, k := range kinds.All() {
		t.Run(k.Kind, func(t *testing.T) {
			t.Parallel()
			found, ok := kinds.Find(k.GroupKind())
			require.True(t, ok)
			require.Equal(t, k.GroupVersionKind, found.GroupVersionKind)
			o := k.New()
			done := k.Complete(o, c)
			require.NotSame(t, o, done)
			require.IsType(t, o, done)
			require.Equal(t, k.New(), o, "the object itself is not changed")
			require.True(t, k.SameSpec(o, done, c), "defaults change no meaning")
			require.NotPanics(t, func() { k.Faults(done, c); k.Create(done, c); k.Update(o, done, c) })
			_, err := os.Stat("../../manifests/crds/" + k.Group + "_" + k.Plural + ".yaml")
			require.Equal(t, k.Served(), err == nil, "served means that there is a CustomResourceDefinition")
		})
	}
}

func TestAnotherKindHasNoRow(t *testing.T) {
	t.Parallel()
	for _, gk := range []schema.GroupKind{{Kind: "VirtualMachine"}, {Group: "pool.kubevirt.io", Kind: "VirtualMachineInstance"}, {Group: vmi.GroupName, Kind: "VirtualMachinePool"}} {
		_, ok := kinds.Find(gk)
		require.False(t, ok, gk)
	}
}

// faulty is one object of each kind that has a fault.
func faulty() map[string]vmi.Object {
	k := &vmi.KubeVirt{}
	k.Spec.Configuration.ImagePullPolicy = "Sometimes"
	size := instancetype.VirtualMachineInstancetypeSpec{Memory: instancetype.MemoryInstancetype{OvercommitPercent: 101}}
	preference := instancetype.VirtualMachinePreferenceSpec{CPU: &instancetype.CPUPreferences{PreferredCPUTopology: new(instancetype.Topology("dies"))}}
	return map[string]vmi.Object{
		"MigrationPolicy":                  &migrationpolicy.MigrationPolicy{},
		"KubeVirt":                         k,
		"VirtualMachine":                   vmitest.NewVM("Sometimes"),
		"VirtualMachineInstance":           vmitest.New(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory = nil }),
		"VirtualMachineInstanceMigration":  &vmi.VirtualMachineInstanceMigration{},
		"VirtualMachineInstanceReplicaSet": vmitest.NewReplicaSet(-1),

		"VirtualMachinePool": &vmpool.VirtualMachinePool{},

		"VirtualMachineInstancetype":        &instancetype.VirtualMachineInstancetype{Spec: size},
		"VirtualMachineClusterInstancetype": &instancetype.VirtualMachineClusterInstancetype{Spec: size},
		"VirtualMachinePreference":          &instancetype.VirtualMachinePreference{Spec: preference},
		"VirtualMachineClusterPreference":   &instancetype.VirtualMachineClusterPreference{Spec: preference},
	}
}

func TestEveryKindIsValidated(t *testing.T) {
	t.Parallel()
	var c kinds.Cluster
	for _, k := range kinds.All() {
		o := faulty()[k.Kind]
		require.NotNil(t, o, "the test has no %s with a fault", k.Kind)
		require.NotEmpty(t, k.Faults(k.Complete(o, c), c), k.Kind)
	}
}

func TestAKubeVirtIsChangedByTheRulesOfItsCreation(t *testing.T) {
	t.Parallel()
	k, _ := kinds.Find(vmi.KubeVirts.GroupKind())
	require.NotEmpty(t, k.Create(faulty()["KubeVirt"], kinds.Cluster{}))
	first := &vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "first"}}
	require.NotEmpty(t, k.Create(&vmi.KubeVirt{}, kinds.Cluster{KubeVirts: []*vmi.KubeVirt{first}}))
	require.NotEmpty(t, k.Update(first, faulty()["KubeVirt"], kinds.Cluster{KubeVirts: []*vmi.KubeVirt{first}}))
	require.Empty(t, k.Update(faulty()["KubeVirt"], &vmi.KubeVirt{}, kinds.Cluster{KubeVirts: []*vmi.KubeVirt{first}}), "it must stay possible to correct one of two")
}

func TestAVMIThatExistsIsJudgedByWhatWasAllowed(t *testing.T) {
	t.Parallel()
	c := kinds.Cluster{Limits: validate.Limits{NoBridgeOnPodNetwork: true}}
	k, _ := kinds.Find(vmi.VirtualMachineInstances.GroupKind())
	v := k.Complete(vmitest.New(vmitest.WithBridge("net")), c)
	require.NotEmpty(t, k.Create(v, c))
	require.Empty(t, k.Update(v, v, c))
	require.True(t, k.FixedSpec)
}

func TestAKindThatMakesVMsGivesOne(t *testing.T) {
	t.Parallel()
	var makers []string
	for _, k := range kinds.All() {
		if k.VM != nil {
			makers = append(makers, k.Kind)
			require.Nil(t, k.VM(k.New()), "%s: a new object has none", k.Kind)
			require.True(t, k.RunsGuests())
		}
	}
	require.Equal(t, []string{"VirtualMachinePool"}, makers)
	k, _ := kinds.Find(vmpool.VirtualMachinePools.GroupKind())
	p := &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	p.Spec.VirtualMachineTemplate = &vmpool.VirtualMachineTemplateSpec{Spec: vmitest.NewVM(vmi.RunAlways).Spec}
	require.Equal(t, p.Spec.VirtualMachineTemplate.Spec, k.VM(p).Spec)
}

func TestAKindThatMakesVMIsGivesTheirTemplate(t *testing.T) {
	t.Parallel()
	var makers []string
	for _, k := range kinds.All() {
		if k.Template != nil {
			makers = append(makers, k.Kind)
			require.Nil(t, k.Template(k.New()), "%s: a new object has none", k.Kind)
		}
	}
	require.Equal(t, []string{"VirtualMachine", "VirtualMachineInstanceReplicaSet"}, makers)
	k, _ := kinds.Find(vmi.VirtualMachines.GroupKind())
	v := vmitest.NewVM(vmi.RunHalted)
	require.Same(t, v.Spec.Template, k.Template(v))
}
