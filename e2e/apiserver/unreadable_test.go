package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// raw sends what no client of ours would send, to a path below /apis.
func raw(ctx context.Context, verb, path, kind, body string) error {
	path, dryRun := strings.CutSuffix(path, "?dryRun=All")
	r := world.kube.Discovery().RESTClient().Verb(verb).AbsPath("/apis/"+path).SetHeader("Content-Type", kind)
	if dryRun {
		r.Param("dryRun", metav1.DryRunAll)
	}
	if body != "" {
		r.Body([]byte(body))
	}
	return r.Do(ctx).Error()
}

// loosen makes the schema of the spec of a kind one that allows anything, until the
// returned function is called or the test ends: as that of another version may. It
// returns when the schema is in force.
func loosen(t *testing.T, resource, kind string) (tighten func()) {
	t.Helper()
	const spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
	at := "apiextensions.k8s.io/v1/customresourcedefinitions/" + resource + ".kubevirt.io"
	var whole struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Properties map[string]any `json:"properties"`
					} `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	get := func() {
		data, err := world.kube.Discovery().RESTClient().Get().AbsPath("/apis/" + at).DoRaw(t.Context())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &whole))
	}
	get()
	before := whole.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	broken := object(kind, "probe", `["no object"]`)
	// replace makes the schema that of the spec, and waits until a spec that ours refuses
	// is accepted, or refused.
	replace := func(schema any, accepted bool) {
		ctx := context.Background()
		patch := text(t, []map[string]any{{"op": "replace", "path": spec, "value": schema}})
		require.NoError(t, raw(ctx, http.MethodPatch, at, string(types.JSONPatchType), patch))
		eventually(t, func() error {
			err := raw(ctx, http.MethodPost, "kubevirt.io/v1/namespaces/default/"+resource+"?dryRun=All", "application/json", broken)
			if (err == nil) == accepted {
				return nil
			}
			return errors.Join(errors.New("the schema is not in force"), err)
		})
	}
	replace(map[string]any{"x-kubernetes-preserve-unknown-fields": true}, true)
	// Of VMIs a policy refuses changes of the spec.
	act := func(action string) {
		require.NoError(t, raw(context.Background(), http.MethodPatch, "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/spec.kubevirt.io", string(types.MergePatchType),
			`{"spec":{"validationActions":["`+action+`"]}}`))
	}
	act("Audit")
	done := false
	tighten = func() {
		if !done {
			done = true
			act("Deny")
			replace(before, false)
		}
	}
	t.Cleanup(tighten)
	return tighten
}

// object is an object of a kind with this spec, as JSON.
func object(kind, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"kubevirt.io/v1","kind":%q,"metadata":{"name":%q},"spec":%s}`, kind, name, spec)
}

// store stores a VMI with this spec.
func (s space) store(name, spec string) {
	s.t.Helper()
	require.NoError(s.t, raw(s.t.Context(), http.MethodPost, s.path(""), "application/json", object("VirtualMachineInstance", name, spec)))
}

func (s space) path(name string) string {
	return strings.TrimSuffix("kubevirt.io/v1/namespaces/"+s.name+"/virtualmachineinstances/"+name, "/")
}

// status is the VMI as far as it can be decoded.
func (s space) readable(name string) (*vmi.VirtualMachineInstance, error) {
	v, err := s.vmis.Get(s.t.Context(), name, metav1.GetOptions{})
	if errors.Is(err, vmi.ErrUnreadable) {
		err = nil
	}
	return v, err
}

// awaitUnreadable waits until the condition of the VMI begins with this text.
func (s space) awaitUnreadable(name, message string) *vmi.VirtualMachineInstance {
	s.t.Helper()
	var v *vmi.VirtualMachineInstance
	eventually(s.t, func() (err error) {
		if v, err = s.readable(name); err != nil {
			return err
		}
		if c := v.Status.Condition(vmi.ConditionSynchronized); c == nil || c.Status != corev1.ConditionFalse || c.Reason != "UnreadableSpec" || !strings.HasPrefix(c.Message, message) {
			return fmt.Errorf("the conditions of %s are %+v", name, v.Status.Conditions)
		}
		return nil
	})
	return v
}

// within logs how long f took, and fails if that is very many times d: a busy host is slow,
// and the back-off of a watch, which must not happen here, is longer. The time for which the
// API server answered nothing meanwhile does not count.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stood := make(chan time.Duration, 1)
	go func() {
		var all time.Duration
		for ctx.Err() == nil {
			asked := time.Now()
			time.Sleep(20 * time.Millisecond)
			_ = world.kube.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
			all += max(0, time.Since(asked)-100*time.Millisecond)
		}
		stood <- all
	}()
	begun := time.Now()
	f()
	took := time.Since(begun)
	cancel()
	none := <-stood
	t.Logf("%s: %s, of which the API server did not answer for %s", what, took.Round(time.Millisecond), none.Round(time.Millisecond))
	require.Less(t, took-none, 6*d, what)
}

const (
	cores    = "spec.domain.cpu.cores: -1: must be a whole number from 0 to 4294967295"
	negative = `{"domain":{"cpu":{"cores":-1},"memory":{"guest":"64Mi"}}}`
	long     = `{"domain":{"cpu":{"cores":1},"memory":{"guest":"64Mi"}},"terminationGracePeriodSeconds":"long"}`
)

func TestAVMIThatCannotBeDecodedStopsNoOther(t *testing.T) {
	s := newSpace(t)
	tighten := loosen(t, "virtualmachineinstances", "VirtualMachineInstance")
	running := s.runningGuest("running")
	stop := s.control()
	started := s.await("running", func(v *vmi.VirtualMachineInstance) bool { return v.Status.Phase == vmi.PhaseScheduled })
	require.NoError(t, s.report(started, "n1", phase(vmi.PhaseRunning)))
	s.awaitPhase("running", vmi.PhaseRunning)

	broken := map[string]string{
		"negative": negative,
		"list":     `["something else"]`,
		"text":     long,
		"costly":   `{"domain":{"memory":{"guest":"1.1e999999999"}}}`,
	}
	messages := map[string]string{
		"negative": cores, "list": "spec: a list: must be an object", "text": `spec.terminationGracePeriodSeconds: "long": must be a whole number`,
		"costly": `spec.domain.memory.guest: "1.1e999999999": must be a quantity of at most`,
	}
	for name, spec := range broken {
		s.store(name, spec)
	}
	within(t, 2*time.Second, "the pod of another VMI", func() { s.pod(s.create(guest("good"))) })
	good := s.awaitPhase("good", vmi.PhaseScheduling)
	s.bind(s.pod(good), "n1") // a pod that no scheduler looks at is said after half a minute
	s.await("good", func(v *vmi.VirtualMachineInstance) bool { return v.Labels[vmi.NodeNameLabel] == "n1" })
	within(t, 2*time.Second, "the conditions", func() {
		for name, message := range messages {
			s.awaitEvents(s.awaitUnreadable(name, message), "Warning UnreadableSpec ×1")
		}
	})
	said, err := kubectl(t, "", "-n", s.name, "get", "vmi", "-o", "wide")
	require.NoError(t, err, said)
	require.Equal(t, 7, strings.Count(said, "\n"), said)

	// A guest that runs is left alone.
	spec := func(name, spec string) {
		t.Helper()
		eventually(t, func() error { // until the policy is off
			return raw(t.Context(), http.MethodPatch, s.path(name), string(types.JSONPatchType), `[{"op":"replace","path":"/spec","value":`+spec+`}]`)
		})
	}
	spec("running", negative)
	// A controller that starts now finds them all in its first list.
	stop()
	writes := len(s.writes.all())
	stop = s.control()
	within(t, 3*time.Second, "the pod of another VMI after a restart", func() {
		s.create(guest("later"))
		s.awaitPhase("later", vmi.PhaseScheduling)
	})
	for name, message := range messages {
		s.awaitUnreadable(name, message)
	}
	require.ElementsMatch(t, []string{"POST pods 201", "PATCH virtualmachineinstances/later/status 200"}, s.writes.all()[writes:], "nothing is written about the others again")
	p, err := s.pods.Get(t.Context(), running.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, p.DeletionTimestamp)
	v, err := s.readable("running")
	require.NoError(t, err)
	require.Equal(t, vmi.PhaseRunning, v.Status.Phase)

	within(t, 2*time.Second, "the pod of a VMI that is repaired", func() {
		spec("text", `{"domain":{"cpu":{"cores":1},"memory":{"guest":"64Mi"}}}`)
		v, err := s.vmis.Get(t.Context(), "text", metav1.GetOptions{})
		require.NoError(t, err)
		s.pod(v)
	})
	s.awaitPhase("text", vmi.PhaseScheduling)

	for name := range broken {
		said, err := kubectl(t, "", "-n", s.name, "delete", "vmi", name, "--timeout=120s", "--wait="+strconv.FormatBool(name != "text"))
		require.NoError(t, err, said)
	}

	// What is stored stays invalid when the schema is ours again.
	stop()
	tighten()
	s.control()
	require.NoError(t, s.vmis.Delete(t.Context(), "running", metav1.DeleteOptions{}))
	eventually(t, func() error {
		p, err := s.pods.Get(t.Context(), running.Name, metav1.GetOptions{})
		if err == nil && p.DeletionTimestamp == nil {
			err = errors.New("the pod is not deleted")
		}
		return err
	})
	v, err = s.readable("running")
	require.NoError(t, err)
	require.Equal(t, []string{vmi.Finalizer}, v.Finalizers, "its guest may still run")
	s.vanish(running)
	s.nothingLeft("running")
	s.awaitGone("running")
}

// runningGuest is the pod of a VMI that runs on n1, made by a controller of its own.
func (s space) runningGuest(name string) *corev1.Pod {
	s.t.Helper()
	stop := s.control()
	p := s.pod(s.create(guest(name)))
	s.bind(p, "n1")
	s.status(p, running)
	stop()
	return p
}

// A VMI that was stored while another schema was in force, and is observed by a
// controller when ours is.
func TestAVMIThatTheSchemaWouldRefuseNowIsReportedAndDeleted(t *testing.T) {
	s := newSpace(t)
	tighten := loosen(t, "virtualmachineinstances", "VirtualMachineInstance")
	s.store("negative", negative)
	s.store("large", `{"domain":{"cpu":{"sockets":4294967296},"memory":{"guest":"64Mi"}}}`)
	s.store("text", long)
	s.store("number", `{"domain":5}`)
	tighten()
	s.control()
	within(t, 2*time.Second, "the pod of another VMI", func() { s.pod(s.create(guest("good"))) })
	s.awaitUnreadable("negative", cores)
	s.awaitUnreadable("text", "spec.terminationGracePeriodSeconds")
	s.awaitUnreadable("number", "spec.domain")
	v := s.awaitUnreadable("large", "spec.domain.cpu.sockets: 4294967296: must be a whole number from 0 to 4294967295")
	s.awaitEvents(v, "Warning UnreadableSpec ×1")
	for _, name := range []string{"negative", "large", "text", "number"} {
		said, err := kubectl(t, "", "-n", s.name, "delete", "vmi", name, "--timeout=120s")
		require.NoError(t, err, said)
	}

	// What marks an object in a process cannot be stored.
	marked := guest("marked")
	vmi.SetUnreadable(marked, &vmi.UnreadableError{Fields: []vmi.UnreadableField{{Message: "x"}}})
	err := raw(t.Context(), http.MethodPost, s.path(""), "application/json", text(t, marked))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "metadata.annotations")
}

func TestAConfigurationThatCannotBeDecodedLeavesTheLastGoodOneEverywhere(t *testing.T) {
	w := newWebhooks(t, nil)
	s := w.space
	replica, other, handler := watchSettings(t, asController()), watchSettings(t, asController()), watchSettings(t, asHandler("n1"))
	s.control(func(c *controller.Config) { c.Settings = replica })
	all := map[string]*live.Watcher{"the leader": replica, "another replica": other, "a handler": handler}
	inForce := func(request string) {
		t.Helper()
		eventually(t, func() error {
			for who, w := range all {
				if q := w.State().Config.Defaults.CPURequest; q == nil || q.String() != request {
					return fmt.Errorf("%s has %v, not %s", who, q, request)
				}
			}
			return nil
		})
	}
	const verbosity = `{"developerConfiguration":{"logVerbosity":{"virtController":-1}}}`
	configuration := func(c string) error {
		return raw(t.Context(), http.MethodPatch, "kubevirt.io/v1/namespaces/"+s.name+"/kubevirts/kubevirt", string(types.JSONPatchType),
			`[{"op":"replace","path":"/spec","value":{"configuration":`+c+`}}]`)
	}
	const good = `{"cpuRequest":"300m"}`
	require.NoError(t, raw(t.Context(), http.MethodPost, "kubevirt.io/v1/namespaces/"+s.name+"/kubevirts", "application/json",
		object("KubeVirt", "kubevirt", `{"configuration":`+good+`}`)))
	t.Cleanup(func() {
		_ = world.vmis.KubeVirts(s.name).Delete(context.Background(), "kubevirt", metav1.DeleteOptions{})
	})
	s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "AllComponentsReady")
	inForce("300m")
	tighten := loosen(t, "kubevirts", "KubeVirt")

	// Where a webhook answers, it is refused.
	w.answer(admission.Webhooks{KubeVirts: replica.KubeVirts})
	w.serve()
	eventually(t, func() error {
		if err := configuration(`{"cpuRequest":"-1"}`); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a change to an invalid configuration was not refused: %w", err)
		}
		return nil
	})
	require.ErrorContains(t, configuration(verbosity), "spec.configuration.developerConfiguration.logVerbosity.virtController: -1: must be a whole number")
	require.NoError(t, configuration(good))
	w.answer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		http.Error(out, "no answer", http.StatusInternalServerError)
	}))

	// Where none does, the last good one stays in force.
	for _, tt := range []struct{ broken, message string }{
		{verbosity, "the last good configuration stays in force: spec.configuration.developerConfiguration.logVerbosity.virtController: Invalid value: -1: must be a whole number"},
		{`["something else"]`, "the last good configuration stays in force: spec.configuration: Invalid value: a list: must be an object"},
	} {
		require.NoError(t, configuration(tt.broken))
		within(t, 2*time.Second, "the condition", func() {
			k := s.awaitBroken("kubevirt")
			require.Contains(t, k.Status.Condition(vmi.ConditionDegraded).Message, tt.message)
			require.Contains(t, k.Status.ObservedDeploymentConfig, "300m")
		})
		inForce("300m")
	}
	for _, cfg := range []*rest.Config{asController(), asHandler("n1")} {
		fresh := watchSettings(t, cfg)
		require.True(t, fresh.Wait(t.Context()))
		all["a process that starts now"] = fresh
		inForce("300m")
	}
	require.Equal(t, 1, replica.Unreadable())
	s.create(guest("still"))
	require.Equal(t, "300m", cpu(s.podOf("still")))

	within(t, 2*time.Second, "the correction", func() {
		require.NoError(t, configuration(`{"cpuRequest":"200m"}`))
		inForce("200m")
		s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "AllComponentsReady")
	})
	s.create(guest("repaired"))
	require.Equal(t, "200m", cpu(s.podOf("repaired")))

	// Also under our own schema, and while a webhook answers.
	require.NoError(t, configuration(verbosity))
	s.awaitBroken("kubevirt")
	tighten()
	w.answer(admission.Webhooks{KubeVirts: replica.KubeVirts})
	within(t, 2*time.Second, "the correction while a webhook answers", func() {
		require.NoError(t, configuration(`{"cpuRequest":"400m"}`))
		inForce("400m")
	})
	require.Equal(t, "400m", s.awaitKubeVirt("kubevirt", vmi.ConditionDegraded, "AllComponentsReady").Spec.Configuration.CPURequest.String())
}

// awaitBroken waits until the status says that the stored configuration cannot be
// decoded.
func (s space) awaitBroken(name string) *vmi.KubeVirt {
	s.t.Helper()
	var k *vmi.KubeVirt
	eventually(s.t, func() (err error) {
		k, err = world.vmis.KubeVirts(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		if !errors.Is(err, vmi.ErrUnreadable) {
			return fmt.Errorf("it can be decoded: %w", err)
		}
		if c := k.Status.Condition(vmi.ConditionDegraded); c == nil || c.Reason != "InvalidConfiguration" || *k.Status.ObservedGeneration != k.Generation {
			return fmt.Errorf("the status is %+v", k.Status)
		}
		return nil
	})
	return k
}

// text is the value as JSON.
func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
