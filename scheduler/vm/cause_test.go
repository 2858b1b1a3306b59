package vm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
)

// ends is what the VMI's controllers write of an end for a reason.
func (w *world) ends(p vmi.Phase, reason, message string) {
	w.phase(p)
	w.vmi.Status.Reason = reason
	w.vmi.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning, Message: message}, metav1.NewTime(w.now))
}

// warned are the warnings of the next plan.
func (w *world) warned() []vmi.Finding {
	var out []vmi.Finding
	for _, a := range vm.Decide(w.observe()).Actions {
		if e, ok := a.(scheduler.Emit); ok && e.Warning {
			out = append(out, e.Finding)
		}
	}
	return out
}

// shown is what kubectl get shows of the VM.
func (w *world) shown() (reason, message string) {
	return w.vm.Status.Reason, w.vm.Status.Condition(vmi.ConditionReady).Message
}

func TestAVMWhoseGuestWasEndedWithItsPodStartsAgain(t *testing.T) {
	for _, c := range []struct {
		name     string
		strategy vmi.RunStrategy
		phase    vmi.Phase
		reason   string
		stopped  bool // by its user, before
		again    bool
	}{
		{"RerunOnFailure after a drain", vmi.RunRerunOnFailure, vmi.PhaseSucceeded, "Evicted", false, true},
		{"RerunOnFailure after a drain whose guest did not power off", vmi.RunRerunOnFailure, vmi.PhaseFailed, "Evicted", false, true},
		{"RerunOnFailure after a preemption", vmi.RunRerunOnFailure, vmi.PhaseSucceeded, "Preempted", false, true},
		{"RerunOnFailure after the pod was deleted", vmi.RunRerunOnFailure, vmi.PhaseSucceeded, "PodDeleted", false, true},
		{"RerunOnFailure after the guest powered itself off", vmi.RunRerunOnFailure, vmi.PhaseSucceeded, "Shutdown", false, false},
		{"RerunOnFailure after a stop, while it was drained", vmi.RunRerunOnFailure, vmi.PhaseSucceeded, "Evicted", true, false},
		{"Always after a drain", vmi.RunAlways, vmi.PhaseSucceeded, "Evicted", false, true},
		{"Manual after a drain", vmi.RunManual, vmi.PhaseSucceeded, "Evicted", false, false},
		{"Once after a drain", vmi.RunOnce, vmi.PhaseSucceeded, "Evicted", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.strategy)
			w.request(vmi.StartRequest, nil)
			w.settle()
			w.run()
			if c.stopped {
				w.request(vmi.StopRequest, nil)
			}
			w.ends(c.phase, c.reason, "the pod of the VMI is evicted; the guest powered off")
			disrupted := c.reason != "Shutdown"
			if disrupted {
				require.Equal(t, []vmi.Finding{{Reason: c.reason, Message: "the last VMI ended: the pod of the VMI is evicted; the guest powered off"}}, w.warned())
			} else {
				require.Empty(t, w.warned())
			}
			w.settle()
			require.Empty(t, w.warned(), "once")
			before := w.vmi.UID
			if w.vmi.DeletionTimestamp != nil {
				w.gone()
			} else {
				reason, message := w.shown()
				require.Equal(t, c.reason, reason)
				require.Equal(t, "the pod of the VMI is evicted; the guest powered off", message)
			}
			require.Equal(t, c.again, w.vmi != nil && w.vmi.UID != before)
			if !c.again {
				return
			}
			require.Nil(t, w.vm.Status.StartFailure, "at once")
			require.Equal(t, c.reason, w.vm.Status.Condition(vmi.ConditionFailure).Reason, "until a guest runs")
			require.Equal(t, c.reason, w.vm.Status.Reason)
			w.run()
			require.Nil(t, w.vm.Status.Condition(vmi.ConditionFailure))
			require.Empty(t, w.vm.Status.Reason)
		})
	}
}

// The kubelet says only with the end of a pod that a liveness probe failed: the VMI has another
// reason until then, and a VM that deleted it would keep that.
func TestAVMWaitsForTheCauseOfTheEndOfAGuestWithALivenessProbe(t *testing.T) {
	const vague = vmi.UnknownDisruption + "; the guest powered off"
	for _, strategy := range []vmi.RunStrategy{vmi.RunAlways, vmi.RunRerunOnFailure, vmi.RunManual, vmi.RunOnce} {
		for name, c := range map[string]struct {
			probed bool
			// becomes is the message of the VMI after three seconds. Empty: it stays.
			reason, becomes string
			deleted         bool          // the VMI, by its user
			ahead           time.Duration // the clock of the node
			waits           bool
			want            string
		}{
			"the probe failed":           {probed: true, reason: "LivenessProbeFailed", becomes: "the liveness probe of the guest failed; the guest powered off", waits: true, want: "LivenessProbeFailed"},
			"it was drained":             {probed: true, reason: "Evicted", becomes: "the pod of the VMI is evicted from node n1; the guest powered off", waits: true, want: "Evicted"},
			"it is not known for long":   {probed: true, waits: true, want: "Evicted"},
			"there is no probe":          {want: "Evicted"},
			"the user deletes the VMI":   {probed: true, deleted: true},
			"the node's clock is ahead":  {probed: true, ahead: time.Hour, want: "Evicted"},
			"the node's clock is behind": {probed: true, ahead: -time.Hour, want: "Evicted"},
		} {
			t.Run(string(strategy)+"/"+name, func(t *testing.T) {
				w := newWorld(t, strategy)
				w.edit(func(s *vmi.VirtualMachineSpec) {
					if c.probed {
						s.Template.Spec.LivenessProbe = &vmi.Probe{}
					}
				})
				w.request(vmi.StartRequest, nil)
				w.settle()
				w.run()
				w.now = w.now.Add(c.ahead)
				w.ends(vmi.PhaseSucceeded, "Evicted", vague)
				w.now = w.now.Add(-c.ahead)
				if c.deleted {
					w.vmi.DeletionTimestamp = &metav1.Time{Time: w.now}
				}
				if c.waits {
					p := w.decide()
					require.Empty(t, p.Actions)
					require.Positive(t, p.Recheck)
					require.LessOrEqual(t, p.Recheck, time.Minute)
					if c.becomes == "" {
						w.now = w.now.Add(p.Recheck)
					} else {
						w.now = w.now.Add(3 * time.Second)
						w.ends(vmi.PhaseSucceeded, c.reason, c.becomes)
					}
				}
				if c.want == "" {
					require.Zero(t, w.decide().Recheck)
					require.Empty(t, w.warned())
					return
				}
				warned := w.warned()
				require.Len(t, warned, 1)
				require.Equal(t, c.want, warned[0].Reason)
			})
		}
	}
}

func TestAVMInCrashLoopBackOffSaysWhy(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settle()
	fails := func(reason, message string) {
		w.phase(vmi.PhaseScheduled)
		w.settle()
		w.ends(vmi.PhaseFailed, reason, message)
		w.settle()
		w.gone()
		require.Equal(t, vmi.StatusCrashLoopBackOff, w.vm.Status.PrintableStatus)
		gotReason, gotMessage := w.shown()
		require.Equal(t, []string{reason, "the last VMI ended: " + message}, []string{gotReason, gotMessage})
		require.Equal(t, vm.ReasonInstanceNotExists, w.vm.Status.Condition(vmi.ConditionReady).Reason, "the word of the contract")
		c := w.vm.Status.Condition(vmi.ConditionFailure)
		require.Equal(t, []string{reason, "the last VMI ended: " + message}, []string{c.Reason, c.Message})
	}
	fails("CannotStart", "disk root: no such image")
	w.now = w.now.Add(time.Hour)
	w.settle()
	require.Equal(t, vmi.StatusStarting, w.vm.Status.PrintableStatus)
	require.Equal(t, "CannotStart", w.vm.Status.Reason, "until a guest runs")
	fails("Crashed", "QEMU was killed")

	// A VMI that waits says itself why.
	w.now = w.now.Add(time.Hour)
	w.settle()
	w.vmi.Status.SetPhase(vmi.PhaseScheduling, metav1.NewTime(w.now))
	w.vmi.Status.Reason = "FailedMount"
	w.vmi.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning, Message: "FailedMount: no secret"}, metav1.NewTime(w.now))
	w.settle()
	reason, message := w.shown()
	require.Equal(t, []string{"FailedMount", "FailedMount: no secret"}, []string{reason, message})
	w.vmi.Status.Reason = ""
	w.run()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionFailure))
	reason, message = w.shown()
	require.Equal(t, []string{"", ""}, []string{reason, message})
}

func TestAVMThatIsNotToRunAnyMoreHasNoCause(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settle()
	w.ends(vmi.PhaseFailed, "CannotStart", "no disk")
	w.settle()
	w.gone()
	w.edit(func(s *vmi.VirtualMachineSpec) { s.RunStrategy = new(vmi.RunHalted) })
	w.settle()
	reason, message := w.shown()
	require.Equal(t, []string{"", "the VM has no VMI"}, []string{reason, message})
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionFailure))
}

func TestAVMWhoseVMIIsRefusedShowsItInItsColumns(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.refusal = &vmi.Finding{Reason: vm.FailedCreate, Message: "exceeded quota"}
	w.settle()
	reason, message := w.shown()
	require.Equal(t, []string{vm.FailedCreate, "exceeded quota"}, []string{reason, message})
	w.refusal = nil
	w.settle()
	require.Empty(t, w.vm.Status.Reason)
}

func TestRestartRequiredNamesTheFields(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*vmi.VirtualMachineInstanceSpec)
		want string
	}{
		"one field":              {func(s *vmi.VirtualMachineInstanceSpec) { s.Hostname = "other" }, "spec.template.spec.hostname"},
		"two fields":             {func(s *vmi.VirtualMachineInstanceSpec) { s.Hostname, s.Subdomain = "a", "b" }, "spec.template.spec.hostname, spec.template.spec.subdomain"},
		"a field of a list":      {func(s *vmi.VirtualMachineInstanceSpec) { s.Domain.Devices.Interfaces[0].Model = "e1000e" }, "spec.template.spec.domain.devices.interfaces[0].model"},
		"an element that is new": {func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes = append(s.Volumes, vmi.Volume{Name: "x"}) }, "spec.template.spec.volumes"},
		"a part that is new":     {func(s *vmi.VirtualMachineInstanceSpec) { s.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"x"}} }, "spec.template.spec.dnsConfig"},
		"more than people read":  {func(s *vmi.VirtualMachineInstanceSpec) { many(s) }, "and 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, vmi.RunAlways)
			w.settle()
			w.run()
			w.edit(func(s *vmi.VirtualMachineSpec) { c.edit(&s.Template.Spec) })
			w.settle()
			got := w.vm.Status.Condition(vmi.ConditionRestartRequired)
			require.NotNil(t, got)
			require.Contains(t, got.Message, "a non-live-updatable field was changed in the template spec: ")
			require.Contains(t, got.Message, c.want)
		})
	}
}

// many changes six fields.
func many(s *vmi.VirtualMachineInstanceSpec) {
	s.Hostname, s.Subdomain, s.SchedulerName, s.PriorityClassName = "a", "b", "c", "d"
	s.NodeSelector, s.TerminationGracePeriodSeconds = map[string]string{"a": "b"}, new(int64(7))
}
