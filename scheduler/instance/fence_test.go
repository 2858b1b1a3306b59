package instance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// unknown makes the condition Ready Unknown.
func unknown(reason, message string) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionUnknown, Reason: reason, Message: message}, metav1.NewTime(now))
		v.Status.Explain()
	}
}

// hung is a VMI that failed while its launcher did not answer.
func hung(options ...vmitest.Option) *vmi.VirtualMachineInstance {
	return stored(vmi.PhaseFailed, append([]vmitest.Option{func(v *vmi.VirtualMachineInstance) { v.Status.Reason = "LauncherUnresponsive" },
		unknown("LauncherUnresponsive", "The guest did not start within 3m0s: it does not answer")}, options...)...)
}

const (
	lostMessage = "the pod of the VMI was removed before its guest was known to have ended, and node node1 is not ready: the guest may still run there, and no other one is started; " +
		"the VMI ends when the node comes back, or, after the node was powered off, when the Node is deleted or tainted node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	waitMessage    = "the pod of the VMI was removed before its guest was known to have ended: virt-handler is to report that nothing of it is left on node node1"
	handlerMessage = waitMessage + ", and is not ready there; see the events of the DaemonSet virt-handler and its pods"
)

func TestAPodThatIsRemovedIsNoEndOfItsGuest(t *testing.T) {
	t.Parallel()
	tainted := nodeIn(corev1.ConditionUnknown, time.Hour)
	tainted.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	up := func(*instance.Node) {}
	lost := func(n *instance.Node) { n.Object = nodeIn(corev1.ConditionUnknown, time.Hour) }
	away := func(n *instance.Node) { n.HandlerDown = now.Add(-time.Hour) }
	restarts := func(n *instance.Node) { n.HandlerDown = now }
	gone := func(n *instance.Node) { n.Object = nil }
	out := func(n *instance.Node) { n.Object = tainted }
	failed := summary{Do: []string{"write", "Warning NodeUnresponsive"}, Phase: vmi.PhaseFailed, Reason: "NodeUnresponsive", Because: map[vmi.ConditionType]string{vmi.ConditionReady: "PodNotExists"}}
	kept := summary{Do: []string{"write"}, Phase: vmi.PhaseRunning, Reason: "PodRemoved", Because: podRemoved}
	said := summary{Do: []string{"write", "Warning PodRemoved"}, Phase: vmi.PhaseRunning, Reason: "PodRemoved", Because: podRemoved}
	reported := summary{Do: []string{"remove finalizer"}}
	released := summary{Do: []string{"remove finalizer", "Normal Deleted"}}
	keptHung := summary{Do: []string{"write"}, Phase: vmi.PhaseFailed, Reason: "LauncherUnresponsive", Because: podRemoved}
	scheduled, recheck := kept, kept
	scheduled.Phase, recheck.Recheck = vmi.PhaseScheduled, 40*time.Second
	saidHung := keptHung
	saidHung.Do = said.Do
	ended := summary{Do: []string{"write"}, Phase: vmi.PhaseFailed, Reason: "LauncherUnresponsive", Because: map[vmi.ConditionType]string{vmi.ConditionReady: "GuestNotRunning"}}
	for name, tt := range map[string]struct {
		vmi     *vmi.VirtualMachineInstance
		node    func(*instance.Node)
		want    summary
		message string
	}{
		"on a node that does not respond":                         {stored(vmi.PhaseRunning), lost, said, lostMessage},
		"on a node that does not respond, and says so already":    {stored(vmi.PhaseRunning, unknown("PodRemoved", lostMessage)), lost, summary{}, ""},
		"on a node that does not respond, after it was NotReady":  {stored(vmi.PhaseRunning, condition(vmi.ConditionReady, "NodeNotReady", "x")), lost, said, lostMessage},
		"on a node that responds":                                 {stored(vmi.PhaseRunning), up, kept, waitMessage},
		"on a node that responds, and the handler is to look":     {stored(vmi.PhaseRunning, unknown("PodRemoved", waitMessage)), up, summary{}, ""},
		"on a node that responds again":                           {stored(vmi.PhaseRunning, unknown("PodRemoved", lostMessage)), up, kept, waitMessage},
		"on a node whose handler is away":                         {stored(vmi.PhaseRunning), away, said, handlerMessage},
		"on a node whose handler restarts":                        {stored(vmi.PhaseRunning), restarts, recheck, waitMessage},
		"before the guest was reported to run":                    {stored(vmi.PhaseScheduled), up, scheduled, waitMessage},
		"on a node that is deleted":                               {stored(vmi.PhaseRunning), gone, failed, "node node1 of the VMI does not exist any more"},
		"on a node that is deleted later":                         {stored(vmi.PhaseRunning, unknown("PodRemoved", lostMessage)), gone, failed, "node node1 of the VMI does not exist any more"},
		"on a node that is out of service":                        {stored(vmi.PhaseRunning, unknown("PodRemoved", lostMessage)), out, failed, "node node1 of the VMI does not respond and is out of service"},
		"of a deleted VMI, on a node that does not respond":       {stored(vmi.PhaseRunning, deleted), lost, said, lostMessage},
		"of a deleted VMI, on a node that responds":               {stored(vmi.PhaseRunning, deleted), up, kept, waitMessage},
		"of a VMI that was deleted long ago, on such a node":      {stored(vmi.PhaseRunning, deleted, long, unknown("PodRemoved", waitMessage)), up, summary{}, ""},
		"of a deleted VMI, on a node that is deleted":             {stored(vmi.PhaseRunning, deleted), gone, released, ""},
		"of a deleted VMI, on a node that is out of service":      {stored(vmi.PhaseRunning, deleted), out, released, ""},
		"of a deleted VMI whose end the handler has reported":     {stored(vmi.PhaseFailed, deleted), up, reported, ""},
		"of a VMI that cannot be decoded":                         {stored(vmi.PhaseRunning, unreadable), lost, said, lostMessage},
		"of a VMI whose launcher hung":                            {hung(), up, keptHung, waitMessage},
		"of a VMI whose launcher hung, on a node that is lost":    {hung(), lost, saidHung, lostMessage},
		"of a VMI whose launcher hung, on a node that is deleted": {hung(), gone, ended, "The guest did not start within 3m0s: it does not answer"},
		"of a deleted VMI whose launcher hung":                    {hung(deleted), up, keptHung, waitMessage},
		"of a deleted VMI whose launcher hung, and that is said":  {hung(deleted, unknown("PodRemoved", waitMessage)), up, summary{}, ""},
		"of a deleted VMI whose launcher hung, and is fenced":     {hung(deleted), gone, reported, ""},
		"of a VMI that no handler had":                            {stored(vmi.PhaseScheduling), up, summary{Do: []string{"write", "Warning PodGone"}, Phase: vmi.PhaseFailed, Reason: "PodGone", Because: map[vmi.ConditionType]string{vmi.ConditionReady: "PodNotExists"}}, "the pod of the VMI does not exist any more"},
		"of a VMI that has succeeded":                             {stored(vmi.PhaseSucceeded, deleted), lost, reported, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observe(tt.vmi)
			tt.node(&o.Node)
			p := instance.Decide(o)
			require.Equal(t, tt.want, summarize(p))
			if tt.message != "" {
				s := statusOf(t, p)
				require.Equal(t, tt.message, s.Condition(vmi.ConditionReady).Message)
				require.Equal(t, tt.want.Because[vmi.ConditionReady] == "PodRemoved", s.PodRemoved())
			}
		})
	}
}

func TestALauncherThatHungIsCertainToHaveEndedWithItsPod(t *testing.T) {
	t.Parallel()
	ended := summary{Do: []string{"write"}, Phase: vmi.PhaseFailed, Reason: "LauncherUnresponsive", Because: map[vmi.ConditionType]string{vmi.ConditionReady: "GuestNotRunning"}}
	require.Equal(t, ended, summarize(instance.Decide(observe(hung(), launcher(exited(137, time.Minute, ""))))))
	require.Equal(t, summary{Recheck: 30 * time.Second}, summarize(instance.Decide(observe(hung(), launcher(running)))), "it has its time to end")
	require.Equal(t, []string{"remove finalizer"}, summarize(instance.Decide(observe(hung(deleted), launcher(exited(137, time.Minute, ""))))).Do)
	o := observe(hung(), launcher(running))
	o.Node.Object = nil
	require.Equal(t, ended, summarize(instance.Decide(o)))
}

func TestAPodThatIsThereAfterAllTakesThatItWasRemovedBack(t *testing.T) {
	t.Parallel()
	s := statusOf(t, instance.Decide(observe(stored(vmi.PhaseRunning, unknown("PodRemoved", waitMessage)), launcher(running))))
	require.Equal(t, corev1.ConditionTrue, s.Condition(vmi.ConditionReady).Status)
}

// A pod that is being deleted is gone a moment after it has ended.
func TestAPodThatEndedIsNotLeftToAHandlerThatIsAway(t *testing.T) {
	t.Parallel()
	o := observe(stored(vmi.PhaseRunning), launcher(exited(0, 0, "")))
	require.Equal(t, 5*time.Second, instance.Decide(o).Recheck)
	o.Node.HandlerDown = now
	require.Equal(t, vmi.PhaseSucceeded, summarize(instance.Decide(o)).Phase)
}
