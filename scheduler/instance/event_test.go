package instance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// event is a warning of the kubelet about the launcher's pod that it repeated for so
// long, up to so long ago.
func event(reason, message string, lasted, ago time.Duration) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{UID: podUID}, Type: corev1.EventTypeWarning, Reason: reason, Message: message,
		FirstTimestamp: metav1.NewTime(now.Add(-ago - lasted)), LastTimestamp: metav1.NewTime(now.Add(-ago)),
	}
}

func normal(e corev1.Event) corev1.Event {
	e.Type = corev1.EventTypeNormal
	return e
}

// silence is what is known of a pod that has been silent for so long, and whose
// events were read so long ago.
func silence(since, read time.Duration, events ...corev1.Event) *instance.Silence {
	return &instance.Silence{Since: now.Add(-since), Read: now.Add(-read), Events: events}
}

// scheduling is a VMI whose pod does not run yet, with the options.
func scheduling(options ...vmitest.Option) *vmi.VirtualMachineInstance {
	return stored(vmi.PhaseScheduling, append([]vmitest.Option{condition(vmi.ConditionReady, "GuestNotRunning", "the pod of the VMI does not run yet"), ranAs}, options...)...)
}

func TestWhatOnlyTheEventsOfAPodSayIsTheCause(t *testing.T) {
	t.Parallel()
	const (
		secret = `MountVolume.SetUp failed for volume "seed" : secret "nope" not found`
		claim  = `MountVolume.SetUp failed for volume "data" : configmap "nope" not found`
		refuse = `Failed to pull image "example/fedora:40": connection refused`
	)
	tests := []struct {
		name   string
		events []corev1.Event
		reason string // empty: there is no cause
		text   string
	}{
		{"a Secret that does not exist", []corev1.Event{event("FailedMount", secret, 0, time.Second)}, "FailedMount", secret},
		{"two volumes, whichever was tried last", []corev1.Event{event("FailedMount", claim, time.Second, 0), event("FailedMount", secret, time.Second, time.Second)},
			"FailedMount", claim + "; " + secret},
		{"a volume that was repaired while another one is not", []corev1.Event{event("FailedMount", secret, time.Second, 20*time.Second), event("FailedMount", claim, 20*time.Second, 0)},
			"FailedMount", claim},
		{"more than can be read", []corev1.Event{event("FailedMount", "a", 0, 0), event("FailedMount", "b", 0, 0), event("FailedMount", "c", 0, 0), event("FailedMount", "d", 0, 0)},
			"FailedMount", "a; b; c; and 1 more"},
		{"the same of another sandbox", []corev1.Event{event("FailedCreatePodSandBox", "sandbox 1a2b", 0, 0), event("FailedCreatePodSandBox", "sandbox 3c4d", 0, 0)},
			"FailedCreatePodSandBox", "sandbox 1a2b"},
		{"volumes with numbers", []corev1.Event{event("FailedMount", `volume "disk-2"`, 0, 0), event("FailedMount", `volume "disk-1"`, 0, 0)}, "FailedMount", `volume "disk-1"; volume "disk-2"`},
		{"events that were combined", []corev1.Event{event("FailedCreatePodSandBox", "(combined from similar events): no CNI", 0, 0)}, "FailedCreatePodSandBox", "no CNI"},
		{"a network whose definition is missing, which the kubelet repeats with more words",
			[]corev1.Event{event("NoNetworkFound", "cannot find lan", 0, 2*time.Second), event("FailedCreatePodSandBox", "plugin failed: cannot find lan", 0, time.Second)},
			"NoNetworkFound", "cannot find lan"},
		{"a network that cannot be made, after the volumes", []corev1.Event{event("FailedMount", secret, 0, 30*time.Second), event("FailedCreatePodSandBox", "plugin failed", 0, time.Second)},
			"FailedCreatePodSandBox", "plugin failed"},
		{"an image of the VMI, before the pod has it", []corev1.Event{event("Failed", refuse, 0, 0)}, "ErrImagePull", "volume root: " + refuse},
		{"an error that the pod says better", []corev1.Event{event("Failed", "Error: ErrImagePull", 0, 0)}, "", ""},
		{"what was over when the image was pulled", []corev1.Event{event("FailedMount", secret, time.Minute, 2*time.Second), normal(event("Pulling", "Pulling image", 0, time.Second))}, "", ""},
		{"an image that is pulled again stays a cause", []corev1.Event{event("Failed", refuse, time.Minute, 2*time.Second), normal(event("Pulling", "Pulling image", 0, time.Second))},
			"ErrImagePull", "volume root: " + refuse},
		{"an image that was pulled at last", []corev1.Event{event("Failed", refuse, time.Minute, 2*time.Second), normal(event("Created", "Container created", 0, time.Second))}, "", ""},
		{"what did not happen again", []corev1.Event{event("FailedMount", secret, time.Second, 2*time.Minute)}, "", ""},
		{"what happens again after a long time", []corev1.Event{event("FailedMount", secret, 30*time.Minute, 5*time.Minute)}, "FailedMount", secret},
		{"an event that is no fault", []corev1.Event{normal(event("FailedMount", secret, 0, 0))}, "", ""},
		{"an event of another component about the pod", []corev1.Event{event("PolicyViolation", "x", 0, 0)}, "", ""},
		{"an event of a pod that was replaced", []corev1.Event{func() corev1.Event {
			e := event("FailedMount", secret, 0, 0)
			e.InvolvedObject.UID = "other"
			return e
		}()}, "", ""},
		{"no event", nil, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := observe(scheduling(), launcher(bound))
			o.Silence = silence(3*time.Second, 0, tt.events...)
			plan := instance.Decide(o)
			require.Equal(t, 2*time.Second, plan.Recheck)
			if tt.reason == "" {
				require.Empty(t, plan.Actions)
				return
			}
			s := statusOf(t, plan)
			require.Equal(t, tt.reason, s.Reason)
			require.Equal(t, tt.text, s.Condition(vmi.ConditionSynchronized).Message)
			require.Equal(t, tt.text, s.Condition(vmi.ConditionReady).Message)
			require.Equal(t, []string{"write", "Warning " + tt.reason}, summarize(plan).Do)
		})
	}
}

func TestOnlyAPodThatWaitsWithoutAReasonIsSilent(t *testing.T) {
	t.Parallel()
	creating := waiting("ContainerCreating", "")
	copies := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "copy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	for name, tt := range map[string]struct {
		vmi    *vmi.VirtualMachineInstance
		pod    *corev1.Pod
		silent bool
	}{
		"a pod without a node":                    {stored(vmi.PhaseScheduling), launcher(), false},
		"a pod that has just got its node":        {stored(vmi.PhaseScheduling), launcher(bound), true},
		"a pod whose containers are created":      {stored(vmi.PhaseScheduling), launcher(bound, creating), true},
		"a pod whose container waits for another": {stored(vmi.PhaseScheduling), launcher(bound, waiting("PodInitializing", "")), true},
		"a pod that copies a disk":                {stored(vmi.PhaseScheduling), launcher(bound, waiting("PodInitializing", ""), copies), false},
		"a pod that says why":                     {stored(vmi.PhaseScheduling), launcher(bound, waiting("ErrImagePull", "x")), false},
		"a pod that runs":                         {stored(vmi.PhaseScheduling), launcher(running), false},
		"a pod that has ended":                    {stored(vmi.PhaseScheduling), launcher(exited(1, 0, "")), false},
		"a pod that is being deleted":             {stored(vmi.PhaseScheduling), launcher(bound, leaving), false},
		"a VMI that is being deleted":             {stored(vmi.PhaseScheduling, deleted), launcher(bound), false},
		"a VMI that was handed over":              {stored(vmi.PhaseScheduled), launcher(bound), false},
		"a VMI that has ended":                    {stored(vmi.PhaseFailed), launcher(bound), false},
		"no pod":                                  {stored(vmi.PhaseScheduling), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.silent, instance.PodWaitsSilently(tt.vmi, tt.pod))
		})
	}
}

// TestASilentPodCostsFewReads plays an hour of a pod that waits.
func TestASilentPodCostsFewReads(t *testing.T) {
	t.Parallel()
	s, first, reads := instance.Silence{Since: now}, 0, 0
	for s.Due().Before(now.Add(time.Hour)) {
		s.Read = s.Due()
		reads++
		if s.Read.Before(now.Add(time.Minute)) {
			first++
		}
	}
	require.Equal(t, now.Add(2*time.Second), (&instance.Silence{Since: now}).Due())
	require.LessOrEqual(t, first, 8, "in a minute")
	require.LessOrEqual(t, reads, 40, "in an hour")
}

func TestTriesThatRepeatAreWrittenOnce(t *testing.T) {
	t.Parallel()
	v, writes, warnings := scheduling(), 0, 0
	for i := range 20 {
		o := observe(v, launcher(bound))
		o.Silence = silence(3*time.Second, 0,
			event("FailedCreatePodSandBox", fmt.Sprintf(`Failed to create pod sandbox "%x": plugin type="bridge" failed: no address %d`, 1<<40+i*7919, i), 0, 0))
		for _, did := range summarize(instance.Decide(o)).Do {
			switch did {
			case "write":
				writes++
			case "Warning FailedCreatePodSandBox":
				warnings++
			}
		}
		if plan := instance.Decide(o); len(plan.Actions) > 0 {
			v = v.DeepCopy()
			v.Status = statusOf(t, plan)
		}
	}
	require.Equal(t, []int{1, 1}, []int{writes, warnings})
}

func TestACauseOfEventsStaysUntilTheyAreReadAgain(t *testing.T) {
	t.Parallel()
	v := scheduling(condition(vmi.ConditionSynchronized, "FailedMount", `secret "nope" not found`))
	o := observe(v, launcher(bound))
	o.Silence = &instance.Silence{Since: now} // virt-controller was restarted
	plan := instance.Decide(o)
	require.Empty(t, plan.Actions)
	require.Equal(t, 2*time.Second, plan.Recheck)

	o.Silence = silence(3*time.Second, 0)
	s := statusOf(t, instance.Decide(o))
	require.Nil(t, s.Condition(vmi.ConditionSynchronized))
	require.Empty(t, s.Reason)
	require.Equal(t, "the pod of the VMI does not run yet", s.Condition(vmi.ConditionReady).Message)
}

func TestALongPullIsNamed(t *testing.T) {
	t.Parallel()
	const pulls = `Pulling image "example/fedora:40"`
	message := func(s *instance.Silence) string {
		o := observe(scheduling(), launcher(bound))
		o.Silence = s
		plan := instance.Decide(o)
		if len(plan.Actions) == 0 {
			return ""
		}
		require.Equal(t, []string{"write"}, summarize(plan).Do)
		status := statusOf(t, plan)
		require.Empty(t, status.Reason, "it is no fault")
		return status.Condition(vmi.ConditionReady).Message
	}
	pulling := normal(event("Pulling", pulls, 0, 8*time.Second))
	require.Equal(t, "the pod of the VMI does not run yet: volume root: "+pulls, message(silence(10*time.Second, 0, pulling)))
	require.Empty(t, message(silence(5*time.Second, 0, pulling)), "soon it is not worth a write")
	require.Empty(t, message(silence(10*time.Second, 0, pulling, normal(event("Pulled", "Pulled image", 0, time.Second)))))
}

func otherScheduler(p *corev1.Pod) { p.Spec.SchedulerName = "nosuch" }

func TestASchedulerThatDoesNothingIsNamed(t *testing.T) {
	t.Parallel()
	created := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-ago)) }
	}
	for name, tt := range map[string]struct {
		pod     *corev1.Pod
		names   string
		recheck time.Duration
	}{
		"one of another name has 3 s":   {launcher(otherScheduler, created(time.Second)), "", 2 * time.Second},
		"and is named then":             {launcher(otherScheduler, created(3*time.Second)), "scheduler nosuch", 0},
		"the cluster's own has 30 s":    {launcher(created(5 * time.Second)), "", 25 * time.Second},
		"and is named then, too":        {launcher(created(30 * time.Second)), "scheduler default-scheduler", 0},
		"a pod that was looked at":      {launcher(otherScheduler, created(time.Hour), gated), "", 0},
		"a pod that has its node":       {launcher(otherScheduler, created(time.Hour), bound), "", 0},
		"a pod that is on its way back": {launcher(otherScheduler, created(time.Hour), leaving), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := instance.Decide(observe(scheduling(), tt.pod))
			require.Equal(t, tt.recheck, plan.Recheck)
			if tt.names == "" {
				require.Empty(t, plan.Actions)
				return
			}
			s := statusOf(t, plan)
			require.Equal(t, "SchedulerUnresponsive", s.Reason)
			require.Contains(t, s.Condition(vmi.ConditionPodScheduled).Message, tt.names)
			require.Contains(t, s.Condition(vmi.ConditionReady).Message, tt.names)
		})
	}
}

func TestAClaimThatGetsNoVolumeIsNamedAndNotTheScheduler(t *testing.T) {
	t.Parallel()
	pvc := func(phase corev1.PersistentVolumeClaimPhase, node string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
		if node != "" {
			c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": node}
		}
		return c
	}
	for name, tt := range map[string]struct {
		ago            time.Duration
		first, second  *corev1.PersistentVolumeClaim
		reason, says   string
		settlesWithout bool
	}{
		"in its first 30 s":   {29 * time.Second, pvc(corev1.ClaimPending, "n1"), pvc(corev1.ClaimBound, "n1"), "", "", true},
		"after them":          {30 * time.Second, pvc(corev1.ClaimPending, "n1"), pvc(corev1.ClaimBound, "n1"), "ClaimNotProvisioned", "PersistentVolumeClaim a: ", false},
		"both":                {time.Minute, pvc(corev1.ClaimPending, "n1"), pvc(corev1.ClaimPending, "n1"), "ClaimNotProvisioned", "PersistentVolumeClaim a, b: ", false},
		"none has a node yet": {time.Minute, pvc(corev1.ClaimPending, ""), pvc(corev1.ClaimPending, ""), "SchedulerUnresponsive", "scheduler default-scheduler", false},
		"all have a volume":   {time.Minute, pvc(corev1.ClaimBound, "n1"), pvc(corev1.ClaimBound, "n1"), "SchedulerUnresponsive", "scheduler default-scheduler", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := scheduling()
			vmitest.WithClaim("first", "a")(v)
			vmitest.WithClaim("second", "b")(v)
			o := observe(v, launcher(func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-tt.ago)) }))
			o.Claims = map[string]*corev1.PersistentVolumeClaim{"a": tt.first, "b": tt.second}
			plan := instance.Decide(o)
			if tt.settlesWithout {
				require.Empty(t, plan.Actions)
				require.Equal(t, time.Second, plan.Recheck)
				return
			}
			s := statusOf(t, plan)
			require.Equal(t, tt.reason, s.Reason)
			require.Contains(t, s.Condition(vmi.ConditionPodScheduled).Message, tt.says)
		})
	}
}

func gated(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
}
