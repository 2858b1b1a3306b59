package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// gpus is an instance type with a device of the node.
func gpus(processors uint32, device string) *instancetype.VirtualMachineClusterInstancetype {
	t := &instancetype.VirtualMachineClusterInstancetype{}
	t.Name, t.Spec.CPU.Guest, t.Spec.Memory.Guest = "gpu", processors, resource.MustParse("1Gi")
	t.Spec.GPUs = []vmi.GPU{{Name: "gpu", DeviceName: device}}
	return t
}

// knowing reads the objects, and the revisions by their names.
func knowing(live *instancetype.VirtualMachineClusterInstancetype, revisions map[string]any) func(context.Context) instancetype.Lookup {
	l := instancetype.Nothing()
	l.Object = func(d vmi.Definition, _, name string) (vmi.Object, error) {
		if live != nil && d.Kind == "VirtualMachineClusterInstancetype" && name == live.Name {
			return live, nil
		}
		return nil, nil
	}
	l.Revision = func(_, name string) (*appsv1.ControllerRevision, error) {
		is, ok := revisions[name]
		if !ok {
			return nil, nil
		}
		raw, err := json.Marshal(is)
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: raw}}, err
	}
	l.Claim = func(_, name string) (*corev1.PersistentVolumeClaim, error) {
		if name != "disk" {
			return nil, nil
		}
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"instancetype.kubevirt.io/default-instancetype": "gpu"}}}, nil
	}
	return func(context.Context) instancetype.Lookup { return l }
}

// reviewed is the answer of the webhook to the request.
func reviewed(t *testing.T, h http.Handler, path string, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: req})
	require.NoError(t, err)
	out := httptest.NewRecorder()
	h.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body)))
	require.Equal(t, http.StatusOK, out.Code)
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &answer))
	return answer.Response
}

func TestAVMIIsAllowedAsItsVMStartedItWithWhatItNames(t *testing.T) {
	t.Parallel()
	m := vmitest.NewVM(vmi.RunAlways, vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithName("web"))
	m.Name, m.UID, m.Generation = "web", "vm-uid", 1
	m.Spec.Template.Spec.Domain.Memory = nil
	m.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "gpu"}
	first := gpus(2, "example.com/first")
	first.SetGroupVersionKind(instancetype.VirtualMachineClusterInstancetypes.GroupVersionKind)
	names := instancetype.References(m)
	expanded, conflicts := vm.Expanded(m, []instancetype.Found{{Reference: names[0], Object: first}}, defaults.Profile{})
	require.Empty(t, conflicts)
	made := vm.Instance(expanded, defaults.Profile{}, nil)

	pinned := m.DeepCopy()
	pinned.Spec.Instancetype.RevisionName = "held"
	held := map[string]any{vmi.StartRevision("vm-uid", 1): map[string]any{"spec": pinned.Spec}, "held": first}
	c, err := client.New(fake.New(m).Config())
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		lookup func(context.Context) instancetype.Lookup
		says   string
	}{
		"as it is":                        {knowing(first, nil), ""},
		"as the VM first used it":         {knowing(gpus(4, "example.com/second"), held), ""},
		"with another device than it has": {knowing(gpus(2, "example.com/second"), nil), "asks for a VMI with another spec.domain.devices.gpus"},
		"of what does not exist":          {knowing(nil, nil), "asks for a VMI with another"},
		"where nothing is known":          {nil, "asks for a VMI with another"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := json.Marshal(made)
			require.NoError(t, err)
			answer := reviewed(t, admission.Owned{Owners: c, Lookup: tt.lookup}, admission.OwnedPath, &admissionv1.AdmissionRequest{
				UID: "1", Operation: admissionv1.Create, Name: made.Name, Namespace: made.Namespace, Object: runtime.RawExtension{Raw: raw},
				Kind: metav1.GroupVersionKind(vmi.VirtualMachineInstances.GroupVersionKind),
			})
			require.Equal(t, tt.says == "", answer.Allowed, "%v", answer.Result)
			if tt.says != "" {
				require.Contains(t, answer.Result.Message, tt.says)
			}
		})
	}
}

func TestAVMIsJudgedByWhatItNames(t *testing.T) {
	t.Parallel()
	w := admission.Webhooks{Lookup: knowing(gpus(2, "example.com/first"), nil)}
	judge := func(change func(*vmi.VirtualMachine)) *admissionv1.AdmissionResponse {
		v := vmitest.NewVM(vmi.RunAlways)
		v.Spec.Template.Spec.Domain.Memory = nil
		v.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "gpu"}
		change(v)
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		return reviewed(t, w, admission.DefaultsPath, &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Name: v.Name, Namespace: v.Namespace, Object: runtime.RawExtension{Raw: raw},
			Kind: metav1.GroupVersionKind(vmi.VirtualMachines.GroupVersionKind),
		})
	}
	require.True(t, judge(func(*vmi.VirtualMachine) {}).Allowed)
	answer := judge(func(v *vmi.VirtualMachine) { v.Spec.Template.Spec.Domain.CPU = &vmi.CPU{Cores: 2} })
	require.False(t, answer.Allowed)
	require.Contains(t, answer.Result.Message, "spec.template.spec.domain.cpu.cores")
	require.True(t, judge(func(v *vmi.VirtualMachine) { v.Spec.Instancetype.Name = "later" }).Allowed, "what is not there is not judged")
}

// written is the VM as the webhook has it stored, or its refusal. old is the one before, or nil.
func written(t *testing.T, w admission.Webhooks, user string, v, old *vmi.VirtualMachine) (*vmi.VirtualMachine, *admissionv1.AdmissionResponse) {
	t.Helper()
	req := &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Name: v.Name, Namespace: "ns", Kind: metav1.GroupVersionKind(vmi.VirtualMachines.GroupVersionKind),
	}
	req.UserInfo.Username = user
	var err error
	req.Object.Raw, err = json.Marshal(v)
	require.NoError(t, err)
	if old != nil {
		req.Operation = admissionv1.Update
		req.OldObject.Raw, err = json.Marshal(old)
		require.NoError(t, err)
	}
	answer := reviewed(t, w, admission.DefaultsPath, req)
	if !answer.Allowed {
		return nil, answer
	}
	raw := req.Object.Raw
	if answer.Patch != nil {
		p, err := jsonpatch.DecodePatch(answer.Patch)
		require.NoError(t, err)
		raw, err = p.Apply(raw)
		require.NoError(t, err)
	}
	out := &vmi.VirtualMachine{}
	require.NoError(t, json.Unmarshal(raw, out))
	return out, answer
}

// booting is a VM whose claim is to name what it uses.
func booting(claim string) *vmi.VirtualMachine {
	v := vmitest.NewVM(vmi.RunAlways, vmitest.WithClaim("root", claim))
	v.Spec.Template.Spec.Domain.Memory = nil
	v.Spec.Instancetype = &vmi.InstancetypeMatcher{InferFromVolume: "root"}
	return v
}

func TestAVMIsStoredWithWhatItsClaimNames(t *testing.T) {
	t.Parallel()
	w := admission.Webhooks{Lookup: knowing(gpus(2, "example.com/first"), nil)}
	for name, old := range map[string]*vmi.VirtualMachine{"created": nil, "changed": vmitest.NewVM(vmi.RunAlways, vmitest.WithClaim("root", "disk"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, _ := written(t, w, "", booting("disk"), old)
			require.Equal(t, &vmi.InstancetypeMatcher{Name: "gpu"}, v.Spec.Instancetype)
			_, answer := written(t, w, "", booting("gone"), old)
			require.NotNil(t, answer.Result)
			require.EqualValues(t, http.StatusUnprocessableEntity, answer.Result.Code)
			require.Equal(t, "spec.instancetype.inferFromVolume", answer.Result.Details.Causes[0].Field)

			v = booting("disk")
			v.Spec.Template.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
			v.Spec.Template.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("512Mi"))}
			v.Spec.Instancetype.InferFromVolumeFailurePolicy = new(vmi.InferFromVolumeIgnore)
			if old == nil { // an update is judged by the other webhook
				_, answer = written(t, w, "", v, old)
				require.Len(t, answer.Result.Details.Causes, 1, "it has no memory of its own then")
				require.Equal(t, "spec.template.spec.domain.cpu.cores", answer.Result.Details.Causes[0].Field)
			}
			v.Spec.Template.Spec.Domain.CPU = nil
			stored, _ := written(t, w, "", v, old)
			require.Nil(t, stored.Spec.Template.Spec.Domain.Memory)
		})
	}
	both := booting("disk")
	both.Spec.Instancetype.Name = "gpu"
	stored := booting("disk")
	stored.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "gpu"}
	again, _ := written(t, w, "", both, stored)
	require.Equal(t, &vmi.InstancetypeMatcher{Name: "gpu"}, again.Spec.Instancetype, "kubectl apply adds the volume to the name that was taken")
	both.Spec.Template.Spec.Domain.Devices.Disks = append(both.Spec.Template.Spec.Domain.Devices.Disks, vmi.Disk{Name: "none"})
	_, answer := written(t, w, "", both, nil)
	require.Len(t, answer.Result.Details.Causes, 2, "with all other faults: %s", answer.Result.Message)
	require.Equal(t, "spec.instancetype.name", answer.Result.Details.Causes[0].Field)
	missing := booting("gone")
	missing.Spec.Template.Spec.Domain.Devices.Disks = append(missing.Spec.Template.Spec.Domain.Devices.Disks, vmi.Disk{Name: "none"})
	_, answer = written(t, w, "", missing, nil)
	require.Len(t, answer.Result.Details.Causes, 2, "%s", answer.Result.Message)
	bare := &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "bare", Annotations: map[string]string{"inferFromVolume": ""}}}
	_, answer = written(t, w, "", bare, nil)
	require.NotContains(t, answer.Result.Message, "inferFromVolume", "a VM without a template names no volume")
	v, _ := written(t, w, "system:serviceaccount:kubevirt:virt-controller", booting("disk"), booting("disk"))
	require.Equal(t, "root", v.Spec.Instancetype.InferFromVolume, "virt-controller may not change it")
}

func TestAVMIsExpandedAsTheConfigurationSays(t *testing.T) {
	t.Parallel()
	type policy = vmi.InstancetypeReferencePolicy
	webhooks := func(p policy) admission.Webhooks {
		return admission.Webhooks{
			Lookup: knowing(gpus(2, "example.com/first"), nil), Settings: func() config.Config {
				c := config.Config{ReferencePolicy: p}
				c.Limits.Features.HostDevices, c.Limits.Devices = true, map[string]bool{"example.com/first": true}
				return c
			},
		}
	}
	named := func() *vmi.VirtualMachine {
		v := vmitest.NewVM(vmi.RunAlways)
		v.Spec.Template.Spec.Domain.Memory = nil
		v.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "gpu"}
		return v
	}
	used := named()
	used.Status.InstancetypeRef = &vmi.InstancetypeStatusRef{Name: "elsewhere", ControllerRevisionRef: &vmi.ControllerRevisionRef{Name: "held"}}
	for name, tt := range map[string]struct {
		policy   policy
		user     string
		v, old   *vmi.VirtualMachine
		expanded bool
	}{
		"reference":                              {policy: "", v: named()},
		"expand":                                 {policy: vmi.ReferencePolicyExpand, v: named(), expanded: true},
		"expand one that is changed":             {policy: vmi.ReferencePolicyExpand, v: named(), old: named(), expanded: true},
		"expand one that has been used":          {policy: vmi.ReferencePolicyExpand, v: named(), old: used},
		"expandAll":                              {policy: vmi.ReferencePolicyExpandAll, v: named(), expanded: true},
		"expandAll, one that has been used":      {policy: vmi.ReferencePolicyExpandAll, v: named(), old: used, expanded: true},
		"expandAll, a change by virt-controller": {policy: vmi.ReferencePolicyExpandAll, v: named(), old: used, user: "system:serviceaccount:kubevirt:virt-controller"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, answer := written(t, webhooks(tt.policy), tt.user, tt.v, tt.old)
			require.NotNil(t, v, "%v", answer.Result)
			s := &v.Spec.Template.Spec.Domain
			if !tt.expanded {
				require.NotNil(t, v.Spec.Instancetype)
				require.Nil(t, s.Memory)
				return
			}
			require.Nil(t, v.Spec.Instancetype)
			require.Equal(t, uint32(2), s.CPU.Sockets)
			require.Equal(t, "1Gi", s.Memory.Guest.String())
			require.Len(t, s.Devices.GPUs, 1)
		})
	}
	conflict := named()
	conflict.Spec.Template.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
	_, answer := written(t, webhooks(vmi.ReferencePolicyExpandAll), "", conflict, nil)
	require.Contains(t, answer.Result.Message, "spec.template.spec.domain.cpu.cores")
	later := named()
	later.Spec.Instancetype.Name = "later"
	v, _ := written(t, webhooks(vmi.ReferencePolicyExpandAll), "", later, nil)
	require.NotNil(t, v.Spec.Instancetype, "what is not there is kept by its name")
}
