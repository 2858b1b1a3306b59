package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// handlers is the policy for what handlers write.
func handlers(t *testing.T) *Policy {
	t.Helper()
	p, err := Read(root+"manifests/policies/virt-handler.yaml", "virt-handler.kubevirt.io")
	require.NoError(t, err)
	return p
}

// moving is a VMI that moves from n1 to n2.
func moving() *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	v.Status.Phase, v.Status.NodeName = vmi.PhaseRunning, "n1"
	v.Status.ActivePods = map[types.UID]string{"p1": "n1", "p2": "n2"}
	v.Status.EvacuationNodeName = "n1"
	v.Status.MigrationState = &vmi.MigrationState{MigrationUID: "m1", SourceNode: "n1", SourcePod: "one", TargetNode: "n2", TargetPod: "two"}
	return v
}

func TestEachHandlerWritesItsPartOfAMigration(t *testing.T) {
	t.Parallel()
	type status = vmi.VirtualMachineInstanceStatus
	type state = vmi.MigrationState
	now := metav1.NewTime(time.Unix(1700000000, 0))
	arrived := func(s *status) {
		s.NodeName, s.EvacuationNodeName = "n2", ""
		s.Interfaces = []vmi.InterfaceStatus{{IP: "192.0.2.7"}}
		m := s.MigrationState
		m.EndTimestamp, m.Completed = &now, true
		m.TargetNodeDomainDetected, m.TargetNodeDomainReadyTimestamp = true, &now
	}
	failed := func(m *state) {
		m.Failed, m.Completed, m.EndTimestamp, m.FailureReason, m.AbortStatus = true, true, &now, "it was aborted", vmi.MigrationAbortSucceeded
	}
	begins := func(m *state) {
		m.StartTimestamp, m.Mode, m.TargetNodeAddress, m.TargetDirectMigrationNodePorts = &now, vmi.MigrationPreCopy, "192.0.2.2", map[string]int{"8186": 0}
	}
	of := func(f func(*state)) func(*status) { return func(s *status) { f(s.MigrationState) } }
	const (
		elsewhere = "may not change a VMI of another node"
		onlyState = "may change of its status only the migrationState"
		itsPart   = "may change of status.migrationState only what it reports"
	)
	for name, tt := range map[string]struct {
		node   string
		before func(*status)
		change func(*status)
		// denied is empty if the write is permitted.
		denied string
	}{
		"the source's begins":                           {node: "n1", change: of(begins)},
		"the source's pauses the guest":                 {node: "n1", change: of(func(m *state) { m.Mode = vmi.MigrationPaused })},
		"the source's has failed":                       {node: "n1", change: of(failed)},
		"the source's goes on with its VMI":             {node: "n1", change: func(s *status) { s.FSFreezeStatus = "frozen" }},
		"the source's cannot succeed":                   {node: "n1", change: of(func(m *state) { m.Completed, m.EndTimestamp = true, &now }), denied: "may end its migration only as one that has failed"},
		"the source's cannot fail without an end":       {node: "n1", change: of(func(m *state) { m.Failed = true }), denied: "may end its migration only as one that has failed"},
		"the source's cannot give the VMI away":         {node: "n1", change: arrived, denied: elsewhere},
		"the source's cannot turn it elsewhere":         {node: "n1", change: of(func(m *state) { m.TargetNode = "n3" }), denied: itsPart},
		"the source's cannot end another migration":     {node: "n1", change: of(func(m *state) { m.MigrationUID = "m2"; failed(m) }), denied: itsPart},
		"the source's cannot ask for an abort":          {node: "n1", change: of(func(m *state) { m.AbortRequested = true }), denied: itsPart},
		"the source's cannot choose how it moves":       {node: "n1", change: of(func(m *state) { m.MigrationConfiguration = &vmi.MigrationConfiguration{} }), denied: itsPart},
		"the source's cannot forget it":                 {node: "n1", change: func(s *status) { s.MigrationState = nil }, denied: itsPart},
		"the source's cannot change one that has ended": {node: "n1", before: of(failed), change: of(func(m *state) { m.FailureReason = "another" }), denied: itsPart},
		"nor one that has no target yet":                {node: "n1", before: of(func(m *state) { m.TargetNode = "" }), change: of(failed), denied: itsPart},
		"nor make one":                                  {node: "n1", before: func(s *status) { s.MigrationState = nil }, change: func(s *status) { s.MigrationState = moving().Status.MigrationState }, denied: itsPart},
		"a handler of a node that is not the source":    {node: "n1", before: of(func(m *state) { m.SourceNode = "n3" }), change: of(failed), denied: itsPart},
		"the target's reports":                          {node: "n2", change: of(func(m *state) { m.TargetNodeDomainDetected, m.TargetCPUSet = true, []int{1} })},
		"the target's takes the VMI":                    {node: "n2", change: arrived},
		"also if the source's has written no start": {node: "n2", change: func(s *status) {
			arrived(s)
			begins(s.MigrationState)
		}},
		"the target's cannot say before how it is sent":   {node: "n2", change: of(func(m *state) { m.Mode = vmi.MigrationPreCopy }), denied: itsPart},
		"the target's cannot take it in two writes":       {node: "n2", change: func(s *status) { s.NodeName = "n2" }, denied: onlyState},
		"nor without the end":                             {node: "n2", change: func(s *status) { arrived(s); s.MigrationState.EndTimestamp = nil }, denied: onlyState},
		"nor of a migration that it says has failed":      {node: "n2", change: func(s *status) { arrived(s); s.MigrationState.Failed = true }, denied: onlyState},
		"the target's cannot end it":                      {node: "n2", change: of(func(m *state) { m.Completed, m.EndTimestamp = true, &now }), denied: itsPart},
		"the target's cannot fail it":                     {node: "n2", change: of(failed), denied: itsPart},
		"the target's cannot take it for another node":    {node: "n2", change: func(s *status) { arrived(s); s.NodeName = "n3" }, denied: onlyState},
		"the target's cannot take another pod":            {node: "n2", change: func(s *status) { arrived(s); s.ActivePods["p3"] = "n2" }, denied: "may not change the pods of a VMI"},
		"the target's cannot change where it came from":   {node: "n2", change: func(s *status) { arrived(s); s.MigrationState.SourceNode = "n3" }, denied: itsPart},
		"the target's cannot say how it went":             {node: "n2", change: func(s *status) { arrived(s); s.MigrationState.FailureReason = "well" }, denied: itsPart},
		"the target's cannot take it after a failure":     {node: "n2", before: of(failed), change: arrived, denied: elsewhere},
		"nor after it was there":                          {node: "n2", before: func(s *status) { arrived(s); s.NodeName = "n1" }, change: func(s *status) { s.NodeName = "n2" }, denied: elsewhere},
		"nor from a node that is not the source":          {node: "n2", before: func(s *status) { s.NodeName = "n3" }, change: arrived, denied: onlyState},
		"nor of a migration without a name":               {node: "n2", before: of(func(m *state) { m.MigrationUID = "" }), change: arrived, denied: elsewhere},
		"nor of a VMI without one":                        {node: "n2", before: func(s *status) { s.MigrationState = nil }, change: func(s *status) { s.NodeName = "n2" }, denied: elsewhere},
		"after the switch the VMI is the target's":        {node: "n2", before: arrived, change: func(s *status) { s.FSFreezeStatus = "frozen" }},
		"and not the source's":                            {node: "n1", before: arrived, change: func(s *status) { s.FSFreezeStatus = "frozen" }, denied: elsewhere},
		"which does not get it back":                      {node: "n1", before: arrived, change: func(s *status) { s.NodeName = "n1" }, denied: elsewhere},
		"the target's cannot change what has ended":       {node: "n2", before: arrived, change: of(func(m *state) { m.Completed = false }), denied: itsPart},
		"a third one takes nothing":                       {node: "n3", change: func(s *status) { arrived(s); s.NodeName = "n3" }, denied: elsewhere},
		"a handler whose token names no node writes none": {change: of(failed), denied: "token does not say which node"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := moving()
			if tt.before != nil {
				tt.before(&old.Status)
			}
			v := old.DeepCopy()
			tt.change(&v.Status)
			refusals, err := handlers(t).Refusals(Request{
				User: "system:serviceaccount:kubevirt:virt-handler", Namespace: "default", Node: tt.node,
				Resource: "virtualmachineinstances", Object: v, Old: old,
			})
			require.NoError(t, err)
			if tt.denied == "" {
				require.Empty(t, refusals)
				return
			}
			require.NotEmpty(t, refusals)
			require.Condition(t, func() bool { return contains(refusals, tt.denied) }, "%q", refusals)
		})
	}
}

func TestWhatMayBeWrittenOfAMigration(t *testing.T) {
	t.Parallel()
	const user = "alice"
	type migration = vmi.VirtualMachineInstanceMigration
	critical := func(m *migration) { m.Spec.Priority = new(vmi.MigrationSystemCritical) }
	label := func(value string) func(*migration) {
		return func(m *migration) { m.Labels = map[string]string{vmi.MigrationSelectorLabel: value} }
	}
	note := func(m *migration) { m.Annotations = map[string]string{"a": "b"} }
	ended := func(m *migration) { m.Status.Phase = vmi.MigrationPhaseFailed }
	for name, tt := range map[string]struct {
		user      string
		permitted bool
		// old is nil for a creation.
		old, change []func(*migration)
		denied      string
	}{
		"a user makes one":                     {user: user},
		"with a priority":                      {user: user, permitted: true, change: []func(*migration){critical}, denied: "spec.priority may be set by Podvisor only"},
		"virt-controller makes one":            {user: account, permitted: true, change: []func(*migration){critical, named("kubevirt-evacuation-abc")}},
		"for a verb":                           {user: account, permitted: true, change: []func(*migration){named(""), generated("kubevirt-migrate-vm-")}},
		"with another name":                    {user: account, permitted: true, denied: "may make migrations only"},
		"that something owns":                  {user: account, permitted: true, change: []func(*migration){named("kubevirt-evacuation-abc"), owned}, denied: "no object owns them"},
		"another account of this name":         {user: "system:serviceaccount:tenant:virt-controller", change: []func(*migration){critical, named("kubevirt-evacuation-abc")}, denied: "spec.priority may be set by Podvisor only"},
		"a user notes something":               {user: user, old: []func(*migration){label("web")}, change: []func(*migration){label("web"), note}},
		"a user gives it the label":            {user: user, old: []func(*migration){}, change: []func(*migration){label("web")}},
		"a user turns it":                      {user: user, old: []func(*migration){}, change: []func(*migration){func(m *migration) { m.Spec.VMIName = "db" }}, denied: "cannot be changed"},
		"virt-controller turns it":             {user: account, permitted: true, old: []func(*migration){}, change: []func(*migration){critical}, denied: "cannot be changed"},
		"a user removes the label":             {user: user, old: []func(*migration){label("web")}, denied: "selector label can't be removed from"},
		"a user changes the label":             {user: user, old: []func(*migration){label("web")}, change: []func(*migration){label("db")}, denied: "modified on an in-flight migration"},
		"when it has ended":                    {user: user, old: []func(*migration){label("web"), ended}, change: []func(*migration){label("db"), ended}},
		"virt-controller changes the label":    {user: account, permitted: true, old: []func(*migration){label("web")}, change: []func(*migration){label("db")}, denied: "modified on an in-flight migration"},
		"virt-controller gives it the label":   {user: account, permitted: true, old: []func(*migration){}, change: []func(*migration){label("web")}},
		"virt-controller takes the finalizer":  {user: account, permitted: true, old: []func(*migration){finalizer(vmi.MigrationFinalizer)}},
		"virt-controller takes another":        {user: account, permitted: true, old: []func(*migration){finalizer("example.com/x")}, denied: "virt-controller may change of a migration only"},
		"virt-controller notes something":      {user: account, permitted: true, old: []func(*migration){}, change: []func(*migration){note}, denied: "virt-controller may change of a migration only"},
		"virt-controller gives it an owner":    {user: account, permitted: true, old: []func(*migration){}, change: []func(*migration){owned}, denied: "virt-controller may change of a migration only"},
		"virt-controller gives it a new label": {user: account, permitted: true, old: []func(*migration){}, change: []func(*migration){func(m *migration) { m.Labels = map[string]string{"a": "b"} }}, denied: "virt-controller may change of a migration only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Read(root+"manifests/policies/migrations.yaml", "migrations.kubevirt.io")
			require.NoError(t, err)
			one := func(all []func(*migration)) *migration {
				m := &migration{ObjectMeta: metav1.ObjectMeta{Name: "move", Namespace: "default"}}
				m.Spec.VMIName = "web"
				for _, f := range all {
					f(m)
				}
				return m
			}
			r := Request{User: tt.user, Namespace: "default", Permitted: tt.permitted, Resource: "virtualmachineinstancemigrations", Object: one(tt.change)}
			if tt.old != nil {
				r.Old = one(tt.old)
			}
			refusals, err := p.Refusals(r)
			require.NoError(t, err)
			require.Equal(t, tt.denied == "", len(refusals) == 0, "%q", refusals)
			require.Condition(t, func() bool { return contains(refusals, tt.denied) }, "%q", refusals)
		})
	}
}

func named(name string) func(*vmi.VirtualMachineInstanceMigration) {
	return func(m *vmi.VirtualMachineInstanceMigration) { m.Name = name }
}

func generated(prefix string) func(*vmi.VirtualMachineInstanceMigration) {
	return func(m *vmi.VirtualMachineInstanceMigration) { m.GenerateName = prefix }
}

func finalizer(name string) func(*vmi.VirtualMachineInstanceMigration) {
	return func(m *vmi.VirtualMachineInstanceMigration) { m.Finalizers = []string{name} }
}

func owned(m *vmi.VirtualMachineInstanceMigration) {
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "1"}}
}

// contains says that one of the texts has the part, or that it is empty.
func contains(all []string, part string) bool {
	return part == "" || slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, part) })
}
