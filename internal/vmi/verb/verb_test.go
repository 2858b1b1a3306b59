package verb_test

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/jsonpatch"
	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// tableOf are the cells of the first two columns below a heading of docs/subresources.md.
func tableOf(t *testing.T, page, after string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(page, after)
	require.True(t, ok, after)
	var rows []string
	for _, line := range strings.Split(strings.TrimLeft(rest[strings.Index(rest, "\n|"):], "\n"), "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows = append(rows, strings.Split(line, "|")[1])
	}
	require.Greater(t, len(rows), 2)
	return rows[2:]
}

var quoted = regexp.MustCompile("`([a-z/-]+)")

// documented are the verbs in the first cells of rows.
func documented(rows []string) []string {
	var out []string
	for _, r := range rows {
		for _, m := range quoted.FindAllStringSubmatch(r, -1) {
			out = append(out, strings.TrimSuffix(m[1], "/"))
		}
	}
	slices.Sort(out)
	return slices.Compact(slices.DeleteFunc(out, func(s string) bool { return s == "" }))
}

func TestThePageHasEveryVerbAndNoOther(t *testing.T) {
	b, err := os.ReadFile("../../../docs/subresources.md")
	require.NoError(t, err)
	page := string(b)
	served := map[string][]string{}
	for _, v := range verb.All() {
		served[v.Resource] = append(served[v.Resource], v.Subresource)
	}
	for _, all := range served {
		slices.Sort(all)
	}
	ofVMs := documented(tableOf(t, page, "Of VMs, below `virtualmachines/NAME/`"))
	ofVMIs := documented(tableOf(t, page, "Of VMIs, below `virtualmachineinstances/NAME/`"))
	// A port follows portforward in both, and the protocol alone is no verb.
	require.Equal(t, served[verb.VMs], ofVMs)
	require.Equal(t, served[verb.VMIs], ofVMIs)
	require.Contains(t, page, "And `"+verb.Expand+"` (PUT")
}

// atRole are the verbs of exactly this role, without the noun.
func atRole(roles ...verb.Role) []string {
	var out []string
	for _, v := range verb.All() {
		if slices.Contains(roles, v.Role) {
			out = append(out, cmp.Or(v.Subresource, v.Resource))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestThePageSaysWhichRoleMayCallWhat(t *testing.T) {
	page, err := os.ReadFile("../../../docs/subresources.md")
	require.NoError(t, err)
	for _, tt := range []struct {
		row  string
		want []string
	}{
		{"| `view` | ", atRole(verb.View)},
		{"| `edit` | those, and all others but ", atRole(verb.Admin, verb.Migrate)},
		{"| `admin` | those, and ", atRole(verb.Admin)},
		{"| `kubevirt.io:migrate`, which is bound by hand | ", atRole(verb.Migrate)},
	} {
		_, rest, ok := strings.Cut(string(page), "\n"+tt.row)
		require.True(t, ok, tt.row)
		cell, _, _ := strings.Cut(rest, "|")
		require.Equal(t, tt.want, documented([]string{cell}), "docs/subresources.md: %s", tt.row)
	}
}

func TestEveryVerbIsThereOnceAndWhole(t *testing.T) {
	paths := map[string]bool{}
	for _, v := range verb.All() {
		require.False(t, paths[v.Path()], v.Path())
		paths[v.Path()] = true
		require.NotNil(t, v.Decide, v.Path())
		require.Contains(t, []string{verb.Get, verb.Put}, v.Method)
		require.NotZero(t, v.Code)
		found, ok := verb.Find(v.Resource, v.Subresource)
		require.True(t, ok)
		require.Equal(t, v.Path(), found.Path())
	}
	require.True(t, paths["virtualmachines/start"])
	_, ok := verb.Find(verb.VMs, "vnc")
	require.False(t, ok)
}

func runs() *vmi.VirtualMachineInstance {
	return vmitest.New(vmitest.WithName("a"), vmitest.WithPhase(vmi.PhaseRunning))
}

// The refusals that no client of package vmi/client can cause; package contract has the others.
func TestWhatIsInTheWayOfAVerbIsNamed(t *testing.T) {
	busy := &vmi.Refusal{Finding: vmi.Finding{Reason: vmi.RefusedBusy, Message: "reset: the guest moves to another node: try again in a moment"}}
	for subresource, words := range map[string]string{
		"reset":   `"": reset: the guest moves to another node: try again in a moment`,
		"console": "another client has its console",
		"vnc":     "Active VNC connection",
	} {
		v, ok := verb.Find(verb.VMIs, subresource)
		require.True(t, ok)
		err := v.Refused(&vmi.VirtualMachineInstance{}, busy)
		require.ErrorContains(t, err, words)
		require.True(t, apierrors.IsConflict(err))
	}
}

func TestWhatNoClientAsksIsRefused(t *testing.T) {
	drained := verb.Observed{VMI: runs(), Drain: "drain", Taints: []corev1.Taint{{Key: "drain", Effect: corev1.TaintEffectNoSchedule}}}
	for name, tt := range map[string]struct {
		resource, subresource string
		observed              verb.Observed
		code                  int32
		words                 string
	}{
		"a stop with a longer time than any": {verb.VMs, "stop", verb.Observed{VM: &vmi.VirtualMachine{Spec: vmi.VirtualMachineSpec{RunStrategy: new(vmi.RunAlways)}}, VMI: runs(), Body: []byte("gracePeriod: 9223372036854775807")}, 400, "gracePeriod has to be less than or equal to 31536000"},
		"a freeze without a timeout":         {verb.VMIs, "freeze", verb.Observed{VMI: runs()}, 400, "Unfreeze timeout in freeze request is not set"},
		"a freeze with a negative timeout":   {verb.VMIs, "freeze", verb.Observed{VMI: runs(), Body: []byte("unfreezeTimeout: -1s")}, 400, "is negative"},
		"a freeze that is malformed":         {verb.VMIs, "freeze", verb.Observed{VMI: runs(), Body: []byte("[")}, 400, "Can not unmarshal"},
		"a pause that is malformed":          {verb.VMIs, "pause", verb.Observed{VMI: runs(), Body: []byte("[")}, 400, "Can not unmarshal"},
		"an evacuation from a drained node":  {verb.VMIs, "evacuate/cancel", drained, 400, "has NodeDrainTaintKey drain"},
		"a port that is none":                {verb.VMIs, "portforward", verb.Observed{VMI: runs(), Tail: []string{"0"}}, 400, "is none from 1 to 65535"},
		"a port of no network":               {verb.VMIs, "portforward", verb.Observed{VMI: runs(), Tail: []string{"1", "sctp"}}, 400, "tcp or udp"},
		"no port":                            {verb.VMIs, "portforward", verb.Observed{VMI: runs()}, 400, "ends with a port"},
		"an expansion of another kind":       {verb.Expand, "", verb.Observed{Body: []byte(`{"kind":"Pod","spec":{"template":{}}}`)}, 400, "its kind is Pod"},
		"an expansion of what is no object":  {verb.Expand, "", verb.Observed{Body: []byte(`[]`)}, 400, "Object is not a valid VirtualMachine"},
		"an expansion of what is too deep":   {verb.Expand, "", verb.Observed{Body: []byte(strings.Repeat("[", 100))}, 400, "Object is not a valid VirtualMachine"},
		"a migration that is malformed":      {verb.VMs, "migrate", verb.Observed{VMI: runs(), Body: []byte("[")}, 400, "Can not unmarshal"},
		"a stop of two fields of a strategy": {verb.VMs, "stop", verb.Observed{VM: &vmi.VirtualMachine{Spec: vmi.VirtualMachineSpec{Running: new(true), RunStrategy: new(vmi.RunAlways)}}}, 500, "remove one"},
	} {
		t.Run(name, func(t *testing.T) {
			v, ok := verb.Find(tt.resource, tt.subresource)
			require.True(t, ok)
			_, err := v.Decide(tt.observed)
			require.ErrorContains(t, err, tt.words)
			var s apierrors.APIStatus
			require.ErrorAs(t, err, &s)
			require.Equal(t, tt.code, s.Status().Code)
		})
	}
}

func TestAPlanOfACallHasItsOptions(t *testing.T) {
	v, _ := verb.Find(verb.VMIs, "freeze")
	p, err := v.Decide(verb.Observed{VMI: runs(), Body: []byte("unfreezeTimeout: 10s")})
	require.NoError(t, err)
	require.Equal(t, verb.Plan{Call: &verb.Call{Options: vmi.FreezeUnfreezeTimeout{UnfreezeTimeout: &metav1.Duration{Duration: 10 * time.Second}}}}, p)
}

func TestAMigrationIsMadeForTheVMIOfTheVM(t *testing.T) {
	v, _ := verb.Find(verb.VMs, "migrate")
	for body, want := range map[string]verb.Plan{
		"":                                   {},
		`{"dryRun":["All"]}`:                 {DryRun: []string{"All"}},
		`{"addedNodeSelector":{"zone":"b"}}`: {Migration: &vmi.VirtualMachineInstanceMigration{Spec: vmi.VirtualMachineInstanceMigrationSpec{AddedNodeSelector: map[string]string{"zone": "b"}}}},
	} {
		p, err := v.Decide(verb.Observed{Namespace: "n", Name: "a", VM: vmitest.NewVM(vmi.RunAlways), VMI: runs(), Body: []byte(body)})
		require.NoError(t, err)
		if want.Migration == nil {
			want.Migration = &vmi.VirtualMachineInstanceMigration{}
		}
		m := want.Migration
		m.APIVersion, m.Kind, m.Namespace, m.GenerateName, m.Spec.VMIName = "kubevirt.io/v1", "VirtualMachineInstanceMigration", "n", "kubevirt-migrate-vm-", "a"
		require.Equal(t, want, p, body)
	}
}

func TestARestartAtOnceIsTakenBackIfItCannotBeQueued(t *testing.T) {
	v, _ := verb.Find(verb.VMs, "restart")
	i := runs()
	i.Spec.TerminationGracePeriodSeconds = new(int64(30))
	p, err := v.Decide(verb.Observed{VM: vmitest.NewVM(vmi.RunAlways), VMI: i, Body: []byte(`{"gracePeriodSeconds":0}`)})
	require.NoError(t, err)
	require.Len(t, p.Patches, 2)
	const at = "/spec/terminationGracePeriodSeconds"
	require.Equal(t, []jsonpatch.Operation{jsonpatch.Test(at, int64(30)), jsonpatch.Replace(at, int64(1))}, p.Patches[0].Operations)
	require.Equal(t, []jsonpatch.Operation{jsonpatch.Test(at, int64(1)), jsonpatch.Replace(at, int64(30))}, p.Patches[0].Undo)
	require.Equal(t, "status", p.Patches[1].Subresource)
}

func TestAVerbThatStopsSaysSoInTheSameWrite(t *testing.T) {
	m := vmitest.NewVM(vmi.RunManual)
	m.ResourceVersion, m.Status.Ready, m.Status.PrintableStatus = "7", true, vmi.StatusRunning
	m.Status.Conditions = []vmi.Condition{{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, {Type: vmi.ConditionAgentConnected, Status: corev1.ConditionTrue}}
	before := m.DeepCopy()
	for name, want := range map[string][]vmi.StateChangeRequest{
		"restart": {{Action: vmi.StopRequest, UID: &runs().UID}, {Action: vmi.StartRequest}},
		"stop":    {{Action: vmi.StopRequest, UID: &runs().UID}},
	} {
		v, _ := verb.Find(verb.VMs, name)
		p, err := v.Decide(verb.Observed{VM: m, VMI: runs(), Now: time.Unix(1e9, 0)})
		require.NoError(t, err)
		require.Len(t, p.Patches, 1)
		require.Equal(t, []jsonpatch.Operation{
			jsonpatch.Test("/metadata/resourceVersion", "7"), jsonpatch.Add("/status/stateChangeRequests", want),
			jsonpatch.Add("/status/printableStatus", vmi.StatusStopping), jsonpatch.Add("/status/ready", false),
			jsonpatch.Add("/status/conditions", []vmi.Condition{
				{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning, Message: "the VMI is being deleted", LastTransitionTime: metav1.Unix(1e9, 0)},
				{Type: vmi.ConditionAgentConnected, Status: corev1.ConditionTrue},
			}),
		}, p.Patches[0].Operations, name)
		require.Equal(t, before, m)
	}
}
