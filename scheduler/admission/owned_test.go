package admission_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// shop is a VM and a set with a disk, a network and a Secret each.
func shop() (*vmi.VirtualMachine, *vmi.VirtualMachineInstanceReplicaSet) {
	options := []vmitest.Option{
		vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithMasquerade("net"), vmitest.WithName("web"),
		vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
	}
	m, s := vmitest.NewVM(vmi.RunAlways, options...), vmitest.NewReplicaSet(2, options...)
	m.Name, s.Name = "web", "web"
	m.UID, s.UID = "vm-uid", "set-uid"
	return m, s
}

// ask returns why virt-controller may not create the VMI for the owners, or "", and
// what the answer's reason is.
func ask(t *testing.T, made *vmi.VirtualMachineInstance, settings config.Config, owners ...vmi.Object) (string, metav1.StatusReason) {
	t.Helper()
	c, err := client.New(fake.New(owners...).Config())
	require.NoError(t, err)
	return askOf(t, c, made, settings)
}

// volumeOf is a DataVolume of the VM, as JSON, with this name and spec.
func volumeOf(m *vmi.VirtualMachine, name, spec string) string {
	return volumeBy(metav1.NewControllerRef(m, vmi.VirtualMachines.GroupVersionKind), name, spec)
}

// volumeBy is such a DataVolume that something controls.
func volumeBy(controller *metav1.OwnerReference, name, spec string) string {
	ref, err := json.Marshal(controller)
	if err != nil {
		panic(err)
	}
	return `{"apiVersion":"cdi.kubevirt.io/v1beta1","kind":"DataVolume","metadata":{"name":"` + name + `","namespace":"default","ownerReferences":[` + string(ref) + `]},"spec":` + spec + `}`
}

// What fills a DataVolume sends the Secret that it names to where its source is.
func TestAttackADataVolumeThatNoTemplateAsksForIsRefused(t *testing.T) {
	t.Parallel()
	m, _ := shop()
	const right = `{"pvc":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}},"source":{"http":{"url":"https://example.com/disk"}}}`
	var spec vmi.DataVolumeSpec
	require.NoError(t, json.Unmarshal([]byte(right), &spec))
	m.Spec.DataVolumeTemplates = []vmi.DataVolumeTemplate{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: spec}}
	other := m.DeepCopy()
	other.UID = "before"
	gone := m.DeepCopy()
	gone.Name = "gone"
	pool := func(uid types.UID) *metav1.OwnerReference {
		return metav1.NewControllerRef(&metav1.ObjectMeta{Name: "pool", UID: uid}, vmpool.VirtualMachinePools.GroupVersionKind)
	}
	member := m.DeepCopy()
	member.Name, member.UID, member.OwnerReferences = "pool-1", "member-uid", []metav1.OwnerReference{*pool("pool-uid")}
	member.Spec.DataVolumeTemplates = []vmi.DataVolumeTemplate{
		{ObjectMeta: metav1.ObjectMeta{Name: "disk-1", Annotations: map[string]string{vm.KeptAnnotation: "true"}}, Spec: spec},
		{ObjectMeta: metav1.ObjectMeta{Name: "gone-1"}, Spec: spec},
	}
	c, err := client.New(fake.New(m, member).Config())
	require.NoError(t, err)
	for name, tt := range map[string]struct{ object, says string }{
		"as its template says":          {volumeOf(m, "disk", right), ""},
		"that a pool keeps":             {volumeBy(pool("pool-uid"), "disk-1", right), ""},
		"that a pool does not keep":     {volumeBy(pool("pool-uid"), "gone-1", right), "has no dataVolumeTemplate with this name"},
		"of another ordinal":            {volumeBy(pool("pool-uid"), "disk-2", right), "VirtualMachine default/pool-2 does not exist"},
		"of a pool without ordinals":    {volumeBy(pool("pool-uid"), "disk", right), "VirtualMachine default/pooldisk does not exist"},
		"of a pool before":              {volumeBy(pool("before"), "disk-1", right), "does not belong to the VirtualMachinePool that is to control the DataVolume"},
		"of a pool, from elsewhere":     {volumeBy(pool("pool-uid"), "disk-1", strings.Replace(right, "example.com", "thief.example", 1)), "asks for a DataVolume with another spec.source.http.url"},
		"of no template":                {volumeOf(m, "other", right), "has no dataVolumeTemplate with this name"},
		"from another source":           {volumeOf(m, "disk", strings.Replace(right, "example.com", "thief.example", 1)), "asks for a DataVolume with another spec.source.http.url"},
		"with a Secret":                 {volumeOf(m, "disk", strings.Replace(right, `"http":{`, `"http":{"secretRef":"s",`, 1)), "asks for a DataVolume with another spec.source.http.secretRef"},
		"of an owner before":            {volumeOf(other, "disk", right), "is another one than the one that is to control the DataVolume"},
		"of an owner that is not there": {volumeOf(gone, "disk", right), "does not exist"},
		"of no owner":                   {`{"metadata":{"name":"disk"},"spec":` + right + `}`, "may create DataVolumes only that one VirtualMachine or its VirtualMachinePool controls"},
		"that is none":                  {`7`, "decode the DataVolume"},
	} {
		message, _ := send(t, c, &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Create, Name: "disk", Namespace: "default", Kind: metav1.GroupVersionKind{Kind: "DataVolume"}, Object: runtime.RawExtension{Raw: []byte(tt.object)}}, config.Config{})
		if tt.says == "" {
			require.Empty(t, message, name)
			continue
		}
		require.Contains(t, message, tt.says, "a DataVolume %s", name)
	}
}

func askOf(t *testing.T, c *client.Client, made *vmi.VirtualMachineInstance, settings config.Config) (string, metav1.StatusReason) {
	t.Helper()
	raw, err := json.Marshal(made)
	require.NoError(t, err)
	return send(t, c, &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Name: made.Name, Namespace: made.Namespace, Kind: metav1.GroupVersionKind(vmi.VirtualMachineInstances.GroupVersionKind), Object: runtime.RawExtension{Raw: raw},
	}, settings)
}

// permitted is what the admission of others may set.
var permitted = []string{"metadata.labels[team]", "metadata.annotations[example.com/*"}

func send(t *testing.T, c *client.Client, req *admissionv1.AdmissionRequest, settings config.Config) (string, metav1.StatusReason) {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: req})
	require.NoError(t, err)
	out := httptest.NewRecorder()
	owned := admission.Owned{Owners: c, Settings: func() config.Config { return settings }, Launchers: admission.Launchers{Fields: permitted}}
	owned.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, admission.OwnedPath, bytes.NewReader(body)))
	require.Equal(t, http.StatusOK, out.Code)
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &answer))
	if answer.Response.Allowed {
		return "", ""
	}
	return answer.Response.Result.Message, answer.Response.Result.Reason
}

func TestAVMIThatItsOwnerAsksForIsAllowed(t *testing.T) {
	t.Parallel()
	m, s := shop()
	for name, change := range map[string]func(*vmi.VirtualMachineInstance){
		"as it was made":     func(*vmi.VirtualMachineInstance) {},
		"that starts paused": func(v *vmi.VirtualMachineInstance) { v.Spec.StartStrategy = new(vmi.StartPaused) },
		"with labels, annotations and a place of another's admission": func(v *vmi.VirtualMachineInstance) {
			labels := map[string]string{"team": "a"}
			maps.Copy(labels, v.Labels)
			v.Labels, v.Annotations = labels, map[string]string{"example.com/a": "b"}
			v.Spec.NodeSelector = map[string]string{"zone": "a"}
		},
		"of a generation before": func(v *vmi.VirtualMachineInstance) {
			v.Annotations = map[string]string{vmi.VMGenerationAnnotation: "0", vmi.StartRevisionAnnotation: "1"}
		},
		"with the defaults that were stored with it": func(v *vmi.VirtualMachineInstance) { *v = *defaults.Instance(v, defaults.Profile{}) },
	} {
		for kind, made := range map[string]*vmi.VirtualMachineInstance{"VM": vm.Instance(m, defaults.Profile{}, nil), "set": replicaset.Instance(s, replicaset.Name(s, 2), 3)} {
			change(made)
			message, _ := ask(t, made, config.Config{}, m, s)
			require.Empty(t, message, "the VMI of a %s %s", kind, name)
		}
	}
}

func TestAVMIIsAllowedWhateverTheDefaultsOfTheClusterAreNow(t *testing.T) {
	t.Parallel()
	m, s := shop()
	for _, t := range []*vmi.VirtualMachineInstanceTemplateSpec{m.Spec.Template, s.Spec.Template} {
		t.Spec.Networks, t.Spec.Domain.Devices.Interfaces, t.Spec.Domain.Devices.AutoattachPodInterface = nil, nil, nil
	}
	before := defaults.Configured(&vmi.KubeVirtConfiguration{
		Network:                   &vmi.NetworkConfiguration{DefaultNetworkInterface: "masquerade"},
		ArchitectureConfiguration: &vmi.ArchitectureConfiguration{AMD64: &vmi.ArchitectureSettings{MachineType: "pc-q35-7.2"}},
	})
	for _, made := range []*vmi.VirtualMachineInstance{vm.Instance(m, before, nil), defaults.Instance(replicaset.Instance(s, replicaset.Name(s, 2), 0), before)} {
		message, _ := ask(t, made, config.Config{}, m, s)
		require.Empty(t, message)
	}
}

func TestAttackAVMIThatItsOwnerDoesNotAskForIsRefused(t *testing.T) {
	t.Parallel()
	secret := vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: &corev1.LocalObjectReference{Name: "other"}}}
	for name, tt := range map[string]struct {
		change func(*vmi.VirtualMachineInstance)
		says   string
	}{
		"of no owner":                          {func(v *vmi.VirtualMachineInstance) { v.OwnerReferences = nil }, "may create VMIs only that one VirtualMachine"},
		"of an owner that does not control it": {func(v *vmi.VirtualMachineInstance) { v.OwnerReferences[0].Controller = nil }, "may create VMIs only that one VirtualMachine"},
		"of two owners": {func(v *vmi.VirtualMachineInstance) {
			v.OwnerReferences = append(v.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"})
		}, "may create VMIs only that one VirtualMachine"},
		"of another kind":               {func(v *vmi.VirtualMachineInstance) { v.OwnerReferences[0].Kind = "KubeVirt" }, "may create VMIs only that one VirtualMachine"},
		"of another group":              {func(v *vmi.VirtualMachineInstance) { v.OwnerReferences[0].APIVersion = "example.com/v1" }, "may create VMIs only that one VirtualMachine"},
		"of an owner that is not there": {func(v *vmi.VirtualMachineInstance) { v.OwnerReferences[0].Name = "gone" }, "gone does not exist"},
		"of an owner before":            {func(v *vmi.VirtualMachineInstance) { v.OwnerReferences[0].UID = "before" }, "is another one than the one that is to control the VMI"},
		"in another namespace":          {func(v *vmi.VirtualMachineInstance) { v.Namespace = "other" }, "does not exist"},
		"with another Secret":           {func(v *vmi.VirtualMachineInstance) { v.Spec.Volumes[1].VolumeSource = secret }, "spec.volumes[1]"},
		"with another image":            {func(v *vmi.VirtualMachineInstance) { v.Spec.Volumes[0].ContainerDisk.Image = "example/thief" }, "spec.volumes[0].containerDisk.image"},
		"with one more volume":          {func(v *vmi.VirtualMachineInstance) { vmitest.WithContainerDisk("thief", "example/thief")(v) }, "spec.volumes"},
		"with another network":          {func(v *vmi.VirtualMachineInstance) { vmitest.WithMultus("more", "other")(v) }, "spec.networks"},
		"with another kernel": {func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Firmware.KernelBoot = &vmi.KernelBoot{KernelArgs: "init=/bin/sh", Container: &vmi.KernelBootContainer{Image: "example/thief"}}
		}, "spec.domain.firmware.kernelBoot"},
		"with a key for its users": {func(v *vmi.VirtualMachineInstance) {
			v.Spec.AccessCredentials = []vmi.AccessCredential{{SSHPublicKey: &vmi.SSHPublicKeyCredential{}}}
		}, "spec.accessCredentials"},
		"with other servers of names": {func(v *vmi.VirtualMachineInstance) {
			v.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"10.9.9.9"}}
		}, "spec.dnsConfig"},
		"with other user data in an annotation": {func(v *vmi.VirtualMachineInstance) {
			v.Annotations = map[string]string{vmi.IgnitionAnnotation: "{}"}
		}, "metadata.annotations[kubevirt.io/ignitiondata]"},
		"with the label of a Service": {func(v *vmi.VirtualMachineInstance) { v.Labels = map[string]string{"app": "shop"} }, "metadata.labels[app]"},
		"with a network of others": {func(v *vmi.VirtualMachineInstance) {
			v.Annotations = map[string]string{"v1.multus-cni.io/default-network": "kube-system/x"}
		}, "metadata.annotations[v1.multus-cni.io/default-network]"},
		"with another class":       {func(v *vmi.VirtualMachineInstance) { v.Spec.PriorityClassName = "system-node-critical" }, "spec.priorityClassName"},
		"with a label of Podvisor": {func(v *vmi.VirtualMachineInstance) { v.Labels = map[string]string{vmi.NodeNameLabel: "n1"} }, "metadata.labels[kubevirt.io/nodeName]"},
	} {
		m, s := shop()
		made := map[string]*vmi.VirtualMachineInstance{"VM": vm.Instance(m, defaults.Profile{}, nil), "set": defaults.Instance(replicaset.Instance(s, replicaset.Name(s, 2), 0), defaults.Profile{})}
		for kind, v := range made {
			v.Spec.Domain.Firmware = &vmi.Firmware{UUID: "5d307ca9-b3ef-428c-8861-06e72d69f223"}
			tt.change(v)
			message, reason := ask(t, v, config.Config{}, m, s)
			require.Contains(t, message, tt.says, "the VMI of a %s %s", kind, name)
			require.Equal(t, metav1.StatusReasonForbidden, reason)
			require.NotContains(t, message, "example/", "no value is shown")
		}
	}
	m, _ := shop()
	made := vm.Instance(m, defaults.Profile{}, nil)
	made.Name = "more"
	message, _ := ask(t, made, config.Config{}, m)
	require.Contains(t, message, "asks for a VMI of another name")
	m.DeletionTimestamp, m.Finalizers = new(metav1.Now()), []string{vmi.VMFinalizer}
	message, _ = ask(t, vm.Instance(m, defaults.Profile{}, nil), config.Config{}, m)
	require.Contains(t, message, "is being deleted")
}

func TestAVMIWhoseOwnerCannotBeReadIsTriedAgain(t *testing.T) {
	t.Parallel()
	m, _ := shop()
	cfg := fake.New(m).Config()
	cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(*http.Request) (*http.Response, error) { return nil, http.ErrHandlerTimeout })
	})
	c, err := client.New(cfg)
	require.NoError(t, err)
	message, reason := askOf(t, c, vm.Instance(m, defaults.Profile{}, nil), config.Config{})
	require.Contains(t, message, "read VirtualMachine default/web, which controls the VMI")
	require.Equal(t, metav1.StatusReasonServiceUnavailable, reason)
}
