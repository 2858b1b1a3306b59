package apiserver

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/sizing"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// types are the instance types of the namespace.
func (s space) types() client.Objects[*instancetype.VirtualMachineInstancetype, *instancetype.VirtualMachineInstancetypeList] {
	return client.Of(world.vmis, instancetype.VirtualMachineInstancetypes, s.name)
}

// offer makes an instance type of the namespace.
func (s space) offer(name string, processors uint32) *instancetype.VirtualMachineInstancetype {
	s.t.Helper()
	o := &instancetype.VirtualMachineInstancetype{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Spec.CPU.Guest, o.Spec.Memory.Guest = processors, resource.MustParse("1Gi")
	o, err := s.types().Create(s.t.Context(), o, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return o
}

// sizedVM is a VM that names an instance type of its namespace, and says nothing of its size.
func sizedVM(name, of string) *vmi.VirtualMachine {
	v := vmOf(name, vmi.RunAlways, func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory, v.Spec.Domain.CPU = nil, nil })
	v.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: of, Kind: "VirtualMachineInstancetype"}
	return v
}

func TestAVMOfAnInstanceTypeStartsWithOneMoreWrite(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	small := s.offer("small", 2)
	s.createVM(sizedVM("vm", "small"))
	v := s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	first, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, uint32(2), first.Spec.Domain.CPU.Sockets)
	require.Equal(t, "1Gi", first.Spec.Domain.Memory.Guest.String())
	require.Equal(t, "small", first.Annotations["kubevirt.io/instancetype-name"])
	const post = "POST controllerrevisions 201"
	require.ElementsMatch(t, append([]string{post, post}, startWrites...), s.quickVM("vm", 0), "and one of virt-handler")
	held := "vm-small-v1beta1-" + string(small.UID) + "-1"
	require.Equal(t, &vmi.InstancetypeStatusRef{
		Name: "small", Kind: "VirtualMachineInstancetype", ControllerRevisionRef: &vmi.ControllerRevisionRef{Name: held},
	}, v.Status.InstancetypeRef)
	r, err := world.kube.AppsV1().ControllerRevisions(s.name).Get(t.Context(), held, metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, metav1.IsControlledBy(r, v))
	require.Equal(t, "small", r.Labels[instancetype.ObjectNameLabel])

	// Neither its change nor its deletion reaches the VM.
	small.Spec.CPU.Guest = 8
	_, err = s.types().Update(t.Context(), small, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.types().Delete(t.Context(), "small", metav1.DeleteOptions{}))
	started := len(s.writes.all())
	s.ask("vm", stopRequest(first))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool {
		now, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
		return err == nil && now.UID != first.UID && v.Status.Ready
	})
	again, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, first.Spec, again.Spec)
	require.NotContains(t, s.writes.all()[started:], post, "a later start costs nothing more")

	// Another one is for the next start.
	s.offer("large", 4)
	s.editVM("vm", `{"spec":{"instancetype":{"name":"large"}}}`)
	v = s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Condition(vmi.ConditionRestartRequired) != nil })
	require.Contains(t, v.Status.Condition(vmi.ConditionRestartRequired).Message, "spec.instancetype")
	require.Equal(t, "large", v.Status.InstancetypeRef.Name)
}

func TestAVMWhosePreferenceIsMissingStartsWhenItIsThere(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	m := vmOf("vm", vmi.RunAlways)
	m.Spec.Preference = &vmi.PreferenceMatcher{Name: "linux", Kind: "VirtualMachinePreference"}
	s.createVM(m)
	v := s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Reason == vm.FailedFindPreference })
	require.Equal(t, "VirtualMachinePreference linux, which spec.preference names, does not exist", v.Status.Condition(vmi.ConditionFailure).Message)
	eventually(t, func() error { return warned(t, s.name, string(v.UID), vm.FailedFindPreference) })
	p := &instancetype.VirtualMachinePreference{ObjectMeta: metav1.ObjectMeta{Name: "linux"}}
	p.Spec.Devices = &instancetype.DevicePreferences{PreferredRng: &vmi.Rng{}}
	_, err := client.Of(world.vmis, instancetype.VirtualMachinePreferences, s.name).Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	v = s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	require.Nil(t, v.Status.Condition(vmi.ConditionFailure))
	i, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, i.Spec.Domain.Devices.Rng)
	require.Equal(t, "linux", i.Annotations["kubevirt.io/preference-name"])
}

func TestAVMWhoseInstanceTypeIsMissingStartsWhenItIsThere(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	s.createVM(sizedVM("vm", "small"))
	v := s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Reason == vm.FailedFindInstancetype })
	require.Equal(t, vmi.StatusStopped, v.Status.PrintableStatus)
	require.Equal(t, "VirtualMachineInstancetype small, which spec.instancetype names, does not exist", v.Status.Condition(vmi.ConditionFailure).Message)
	eventually(t, func() error {
		return warned(t, s.name, string(v.UID), vm.FailedFindInstancetype)
	})
	s.offer("small", 1)
	v = s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	require.Nil(t, v.Status.Condition(vmi.ConditionFailure))
	require.Empty(t, v.Status.Reason)
}

// warned requires one warning of the reason.
func warned(t *testing.T, namespace, uid, reason string) error {
	l, err := world.kube.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + uid + ",reason=" + reason})
	if err == nil && len(l.Items) != 1 {
		err = apierrors.NewNotFound(vmi.VirtualMachines.Resource().GroupResource(), reason)
	}
	return err
}

// judgeNamed makes the webhooks read what VMs name, with the rights of virt-controller.
func judgeNamed(t *testing.T, in config.Config) func(*webhooks) {
	t.Helper()
	return func(w *webhooks) {
		cfg := asController()
		kube, err := kubernetes.NewForConfig(cfg)
		require.NoError(t, err)
		vmis, err := client.New(cfg)
		require.NoError(t, err)
		w.answer(admission.Webhooks{
			Lookup: func(ctx context.Context) instancetype.Lookup { return sizing.Lookup(ctx, vmis, kube) }, Settings: func() config.Config { return in },
		})
	}
}

func TestAVMIsJudgedWithWhatItNames(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, judgeNamed(t, config.Config{}))
	w.serve()
	w.offer("small", 2)
	preferences := client.Of(world.vmis, instancetype.VirtualMachinePreferences, w.name)
	p := &instancetype.VirtualMachinePreference{ObjectMeta: metav1.ObjectMeta{Name: "windows"}}
	p.Spec.MachineType = &instancetype.MachineTypePreferences{PreferredMachineType: "pc-q35-9.2"}
	p.Spec.Requirements = &instancetype.PreferenceRequirements{CPU: &instancetype.CPURequirement{Guest: 2}}
	_, err := preferences.Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	vms := world.vmis.VirtualMachines(w.name)
	refused := func(v *vmi.VirtualMachine, cause string) {
		t.Helper()
		_, err := vms.Create(t.Context(), v, metav1.CreateOptions{})
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, cause)
	}

	v := sizedVM("conflict", "small")
	v.Spec.Template.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
	refused(v, "spec.template.spec.domain.cpu.cores")
	v = sizedVM("unnamed", "")
	refused(v, "spec.instancetype: Not found")

	v = sizedVM("web", "small")
	v.Spec.Preference = &vmi.PreferenceMatcher{Name: "windows", Kind: "VirtualMachinePreference"}
	var stored *vmi.VirtualMachine
	eventually(t, func() error { // on a busy host the webhook may be too late, and is left out then
		stored, err = vms.Create(t.Context(), v, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && stored.Spec.Template.Spec.Domain.Machine == nil {
			err = errors.New("the VM is not completed")
		}
		return err
	})
	require.Equal(t, "pc-q35-9.2", stored.Spec.Template.Spec.Domain.Machine.Type, "it stays over all starts")
	require.Nil(t, stored.Spec.Template.Spec.Domain.CPU, "the size is not written into the VM")

	w.offer("tiny", 1)
	v = sizedVM("tiny", "tiny")
	v.Spec.Preference = &vmi.PreferenceMatcher{Name: "windows", Kind: "VirtualMachinePreference"}
	refused(v, "the preference requires 2 processors, and this is 1")

	v = sizedVM("kind", "small")
	v.Spec.Instancetype.Kind = "Flavor"
	refused(v, `spec.instancetype.kind: Unsupported value: "Flavor": supported values: "VirtualMachineClusterInstancetype", "VirtualMachineInstancetype"`)

	_, err = vms.Create(t.Context(), sizedVM("early", "later"), metav1.CreateOptions{})
	require.NoError(t, err, "what is not there is not judged")
}

func TestInstanceTypesAndPreferencesAreJudged(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.serve()
	o := &instancetype.VirtualMachineInstancetype{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}
	o.Spec.CPU.Guest, o.Spec.Memory.Guest = 0, resource.MustParse("-1Gi")
	o.Spec.Memory.OvercommitPercent, o.Spec.Memory.Hugepages = 50, &vmi.Hugepages{PageSize: "2Mi"}
	_, err := w.types().Create(t.Context(), o, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "spec.memory.overcommitPercent")
	require.ErrorContains(t, err, "spec.cpu.guest")
	require.ErrorContains(t, err, "spec.memory.guest")
	p := &instancetype.VirtualMachineClusterPreference{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	p.Spec.CPU = &instancetype.CPUPreferences{
		PreferredCPUTopology: new(instancetype.TopologySpread), SpreadOptions: &instancetype.SpreadOptions{Across: new(instancetype.SpreadCoresThreads), Ratio: new(uint32(3))},
	}
	_, err = client.Of(world.vmis, instancetype.VirtualMachineClusterPreferences, "").Create(t.Context(), p, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "spec.cpu.spreadOptions.ratio")
}

func TestAVMTakesTheNameOfItsInstanceTypeFromItsClaim(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, judgeNamed(t, config.Config{}))
	w.serve()
	w.offer("small", 2)
	w.createClaim("disk", corev1.ReadWriteOnce)
	labels := `{"metadata":{"labels":{"instancetype.kubevirt.io/default-instancetype":"small","instancetype.kubevirt.io/default-instancetype-kind":"VirtualMachineInstancetype"}}}`
	_, err := world.kube.CoreV1().PersistentVolumeClaims(w.name).Patch(t.Context(), "disk", types.MergePatchType, []byte(labels), metav1.PatchOptions{})
	require.NoError(t, err)
	vms := world.vmis.VirtualMachines(w.name)
	inferring := func(name, claim string) *vmi.VirtualMachine {
		v := vmOf(name, vmi.RunHalted, vmitest.WithClaim("data", claim), func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory, v.Spec.Domain.CPU = nil, nil })
		v.Spec.Instancetype = &vmi.InstancetypeMatcher{InferFromVolume: "data"}
		return v
	}
	v, err := vms.Create(t.Context(), inferring("web", "disk"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, &vmi.InstancetypeMatcher{Name: "small", Kind: "VirtualMachineInstancetype"}, v.Spec.Instancetype)
	v.Spec.Instancetype.InferFromVolume = "data"
	v, err = vms.Update(t.Context(), v, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "small", v.Spec.Instancetype.Name, "also where its manifest is applied again")
	_, err = vms.Create(t.Context(), inferring("none", "gone"), metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "spec.instancetype.inferFromVolume: Invalid value: \"data\": PersistentVolumeClaim gone does not exist")
}

func TestAVMIsStoredAsItsInstanceTypeSaysIfTheConfigurationAsksForIt(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, judgeNamed(t, config.Config{ReferencePolicy: vmi.ReferencePolicyExpand}))
	w.serve()
	w.offer("small", 2)
	v, err := world.vmis.VirtualMachines(w.name).Create(t.Context(), sizedVM("web", "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Nil(t, v.Spec.Instancetype)
	require.Equal(t, uint32(2), v.Spec.Template.Spec.Domain.CPU.Sockets)
	require.Equal(t, "1Gi", v.Spec.Template.Spec.Domain.Memory.Guest.String())
	v, err = world.vmis.VirtualMachines(w.name).Create(t.Context(), sizedVM("early", "later"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "later", v.Spec.Instancetype.Name, "what is not there is kept by its name")
}

// A VM of each is judged by the API server, and not stored.
func TestTheReadyInstanceTypesAndPreferencesApply(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, judgeNamed(t, config.Config{ReferencePolicy: vmi.ReferencePolicyExpand}))
	w.serve()
	said, err := kubectl(t, "", "apply", "--server-side", "-k", "../../manifests/instancetypes")
	require.NoError(t, err, said)
	sizes, err := client.Of(world.vmis, instancetype.VirtualMachineClusterInstancetypes, "").List(t.Context(), metav1.ListOptions{LabelSelector: "instancetype.kubevirt.io/vendor=podvisor.io"})
	require.NoError(t, err)
	preferences, err := client.Of(world.vmis, instancetype.VirtualMachineClusterPreferences, "").List(t.Context(), metav1.ListOptions{LabelSelector: "instancetype.kubevirt.io/vendor=podvisor.io"})
	require.NoError(t, err)
	require.Len(t, sizes.Items, 57)
	require.Len(t, preferences.Items, 44)
	expand := func(of, preference string) {
		t.Helper()
		v := sizedVM("web", of)
		v.Spec.Instancetype.Kind = ""
		if preference != "" {
			v.Spec.Preference = &vmi.PreferenceMatcher{Name: preference}
		}
		v, err := world.vmis.VirtualMachines(w.name).Create(t.Context(), v, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.NoError(t, err, "%s %s", of, preference)
		require.Nil(t, v.Spec.Instancetype)
		require.NotNil(t, v.Spec.Template.Spec.Domain.Memory.Guest)
	}
	for _, s := range sizes.Items {
		expand(s.Name, "")
	}
	for _, p := range preferences.Items {
		expand("u1.2xlarge", p.Name)
	}
}
