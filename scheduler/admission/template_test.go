package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// owners are the kinds with a template of VMIs, each with what its spec has beside the
// template, and then the same with the guests off.
var owners = []struct {
	vmi.Definition
	on, off string
}{
	{vmi.VirtualMachines.Definition, `"runStrategy":"Always"`, `"runStrategy":"Halted"`},
	{vmi.VirtualMachineInstanceReplicaSets.Definition, `"replicas":2,"selector":{"matchLabels":{"a":"b"}}`, `"replicas":0,"paused":true,"selector":{"matchLabels":{"a":"b"}}`},
}

func owner(d vmi.Definition, rest, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"kubevirt.io/v1","kind":"%s","metadata":{"name":"web","namespace":"ns"},"spec":{%s,"template":{"metadata":{"labels":{"a":"b"}},"spec":%s}}}`, d.Kind, rest, spec)
}

// askOwner sends a review of an object of the kind, and of the one before if there was
// one.
func askOwner(t testing.TB, h Webhooks, path string, d vmi.Definition, object, before string) *admissionv1.AdmissionResponse {
	t.Helper()
	req := &admissionv1.AdmissionRequest{UID: "7", Name: "web", Namespace: "ns", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind(d.GroupVersionKind), Object: runtime.RawExtension{Raw: []byte(object)}}
	if before != "" {
		req.Operation, req.OldObject.Raw = admissionv1.Update, []byte(before)
	}
	return post(t, h, path, &admissionv1.AdmissionReview{Request: req})
}

func TestAllFaultsOfATemplateAreNamedWithTheirPaths(t *testing.T) {
	t.Parallel()
	faulty := `{"domain":{"cpu":{"cores":1000},"devices":{"disks":[{"name":"a"}]}},"hostname":"A B"}`
	right := `{"domain":{"memory":{"guest":"64Mi"}}}`
	for _, k := range owners {
		for name, before := range map[string]string{"created": "", "changed": owner(k.Definition, k.on, right)} {
			r := askOwner(t, Webhooks{}, ValidationPath, k.Definition, owner(k.Definition, k.on, faulty), before)
			require.False(t, r.Allowed, "%s %s", k.Kind, name)
			require.Equal(t, k.Kind, r.Result.Details.Kind)
			var fields []string
			for _, c := range r.Result.Details.Causes {
				fields = append(fields, c.Field)
			}
			require.Subset(t, fields, []string{"spec.template.spec.domain.devices.disks[0].name", "spec.template.spec.domain.cpu", "spec.template.spec.hostname"}, "%s %s", k.Kind, name)
		}
	}
}

// A change that leaves the template alone is not judged by it: what the cluster allows
// may have changed since it was written.
func TestWhatTheClusterForbidsByNowCanBeStopped(t *testing.T) {
	t.Parallel()
	v := &vmi.KubeVirt{}
	v.Spec.Configuration.Network = &vmi.NetworkConfiguration{PermitBridgeInterfaceOnPodNetwork: new(false)}
	v.Spec.Configuration.ArchitectureConfiguration = &vmi.ArchitectureConfiguration{AMD64: &vmi.ArchitectureSettings{MachineType: "pc-q35-7.2", EmulatedMachines: []string{"pc-q35-7.*"}}}
	c, faults := config.Resolve(v)
	require.Empty(t, faults)
	a := Webhooks{Settings: func() config.Config { return c }}
	for name, forbidden := range map[string]string{
		"a bridge":       `{"domain":{"memory":{"guest":"64Mi"},"devices":{"interfaces":[{"name":"n","bridge":{}}]}},"networks":[{"name":"n","pod":{}}]%s}`,
		"a machine type": `{"domain":{"memory":{"guest":"64Mi"},"machine":{"type":"pc-q35-9.0"}}%s}`,
		"a template that was never without fault": `{"domain":{"devices":{"disks":[{"name":"a"}]}}%s}`,
	} {
		was, other := fmt.Sprintf(forbidden, ""), fmt.Sprintf(forbidden, `,"hostname":"other"`)
		for _, k := range owners {
			before := owner(k.Definition, k.on, was)
			require.False(t, askOwner(t, a, ValidationPath, k.Definition, before, "").Allowed, "a new %s with %s", k.Kind, name)
			stopped := owner(k.Definition, k.off, was)
			r := askOwner(t, a, DefaultsPath, k.Definition, stopped, before)
			require.True(t, r.Allowed)
			r = askOwner(t, a, ValidationPath, k.Definition, patched(t, stopped, r), before)
			require.True(t, r.Allowed, "the stop of a %s with %s: %v", k.Kind, name, r.Result)
			r = askOwner(t, a, ValidationPath, k.Definition, owner(k.Definition, k.on, other), before)
			require.False(t, r.Allowed, "another template of a %s with %s", k.Kind, name)
			invalid := strings.NewReplacer(`"Halted"`, `"Sometimes"`, `"replicas":0`, `"replicas":-1`).Replace(stopped)
			require.False(t, askOwner(t, a, ValidationPath, k.Definition, invalid, before).Allowed, "what is changed is judged")
		}
	}
}

func TestAttackAMillionElementsInATemplateAreRefused(t *testing.T) {
	t.Parallel()
	disks := "[" + strings.TrimSuffix(strings.Repeat("{},", 900_000), ",") + "]"
	for _, k := range owners {
		for _, path := range []string{DefaultsPath, ValidationPath} {
			var r *admissionv1.AdmissionResponse
			took := testenv.ProcessorTime(t, func() {
				r = askOwner(t, Webhooks{}, path, k.Definition, owner(k.Definition, k.on, `{"domain":{"devices":{"disks":`+disks+`}}}`), "")
			})
			require.False(t, r.Allowed)
			require.Contains(t, r.Result.Message, "spec.template.spec.domain.devices.disks: Too many: must have at most 256 items")
			require.Less(t, took, 10*time.Second)
		}
	}
}
