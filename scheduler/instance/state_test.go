package instance_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// keeps makes the VMI one whose TPM outlasts it.
func keeps(v *vmi.VirtualMachineInstance) {
	v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)}
}

// first and second are the claims for the state of the VMI before and after its migration. The
// second one was made later, and has its label if it is labelled.
func first(v *vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim {
	c := pod.StateClaim(v, config)
	c.UID, c.CreationTimestamp = "first", metav1.NewTime(now.Add(-time.Hour))
	return c
}

func second(v *vmi.VirtualMachineInstance, labelled bool) *corev1.PersistentVolumeClaim {
	into := config
	into.Role = pod.Role{Name: vmi.RoleTarget, For: pod.Object{Name: "move", UID: "job"}}
	c := pod.StateClaim(v, into)
	c.UID, c.CreationTimestamp = "second", metav1.NewTime(now.Add(-time.Minute))
	if labelled {
		c.Labels = map[string]string{vmi.StateLabel: v.Name}
	}
	return c
}

// in gives the pod the claim.
func in(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "vm-state", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
}

// onClaims are what the plan does with claims, in words.
func onClaims(p scheduler.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		switch a := a.(type) {
		case scheduler.ChangeClaim:
			out = append(out, "label "+string(a.UID))
		case scheduler.DeleteClaim:
			out = append(out, "delete "+string(a.UID))
		case scheduler.RemoveFinalizer:
			out = append(out, "release")
		}
	}
	return out
}

func TestWhichClaimHasTheStateOfAVMI(t *testing.T) {
	t.Parallel()
	const source = "persistent-state-for-testvmi"
	moving := func(v *vmi.VirtualMachineInstance) {
		moves(v)
		v.Status.MigrationState.SourcePersistentStatePVCName = source
		v.Status.MigrationState.TargetPersistentStatePVCName = second(v, false).Name
	}
	has := func(v *vmi.VirtualMachineInstance) {
		arrived(v)
		moving(v)
		v.Status.NodeName, v.Status.MigrationState.Completed = "node2", true
	}
	lost := func(v *vmi.VirtualMachineInstance) { v.Status.Reason = "StateMissing" }
	cancelled := exited(1, time.Second, "Cancelled: the launcher was stopped before the guest ran")
	for name, tt := range map[string]struct {
		phase   vmi.Phase
		options []vmitest.Option
		source  *corev1.Pod
		target  *corev1.Pod
		labels  bool // of the second claim
		without string
		want    []string
	}{
		"the guest moves":                               {vmi.PhaseRunning, []vmitest.Option{moving}, launcher(running, in(source)), secondPod(running), false, "", nil},
		"the guest has moved":                           {vmi.PhaseRunning, []vmitest.Option{has}, launcher(running, in(source)), secondPod(running, in("second")), false, "", []string{"label second", "delete first"}},
		"it was killed after the label":                 {vmi.PhaseRunning, []vmitest.Option{has}, launcher(running, in(source)), secondPod(running, in("second")), true, "", []string{"delete first"}},
		"nothing is left to do":                         {vmi.PhaseRunning, []vmitest.Option{has}, nil, secondPod(running, in("second")), true, "first", nil},
		"the migration has failed":                      {vmi.PhaseRunning, []vmitest.Option{moving, hasFailed}, launcher(running, in(source)), secondPod(running), false, "", []string{"delete second"}},
		"a start after it was not known":                {vmi.PhaseRunning, nil, launcher(running, in("second")), nil, true, "", []string{"delete first"}},
		"such a start, and the guest does not run yet":  {vmi.PhaseScheduled, nil, launcher(running, in("second")), nil, true, "", nil},
		"such a start finds nothing":                    {vmi.PhaseFailed, []vmitest.Option{lost}, launcher(exited(1, time.Minute, "StateMissing: m"), in("second")), nil, true, "", []string{"delete second"}},
		"it finds nothing, and there is no other":       {vmi.PhaseFailed, []vmitest.Option{lost}, launcher(exited(1, time.Minute, "StateMissing: m"), in("second")), nil, true, "first", nil},
		"both were killed":                              {vmi.PhaseFailed, []vmitest.Option{moving}, launcher(exited(137, time.Minute, "")), secondPod(exited(137, time.Second, "")), false, "", []string{"label second"}},
		"the target is gone":                            {vmi.PhaseFailed, []vmitest.Option{moving}, launcher(exited(137, time.Minute, "")), nil, false, "", []string{"label second"}},
		"the target has not ended":                      {vmi.PhaseFailed, []vmitest.Option{moving}, launcher(exited(137, time.Minute, "")), secondPod(running), false, "", nil},
		"the target says that it ran no guest":          {vmi.PhaseFailed, []vmitest.Option{moving}, launcher(exited(137, time.Minute, "")), secondPod(cancelled), false, "", []string{"delete second"}},
		"it ended after it had failed to move":          {vmi.PhaseFailed, []vmitest.Option{moving, hasFailed}, launcher(exited(137, time.Minute, "")), nil, false, "", []string{"label second"}},
		"it had failed to move, and no guest ran there": {vmi.PhaseFailed, []vmitest.Option{moving, hasFailed}, launcher(exited(137, time.Minute, "")), secondPod(cancelled), false, "", []string{"delete second"}},
		"it moved away, and that was not written":       {vmi.PhaseFailed, []vmitest.Option{moving, hasFailed}, launcher(exited(0, time.Minute, "MovedAway: the guest runs in another pod")), secondPod(exited(137, time.Second, "")), false, "", []string{"label second"}},
		"it ended where it had moved to":                {vmi.PhaseSucceeded, []vmitest.Option{has}, nil, secondPod(exited(0, time.Second, "Shutdown: m"), in("second")), false, "", []string{"label second", "delete first"}},
		"it is deleted, and both were killed":           {vmi.PhaseFailed, []vmitest.Option{moving, deleted}, launcher(exited(137, time.Minute, "")), nil, false, "", []string{"label second", "release"}},
		"it is deleted while the target runs":           {vmi.PhaseFailed, []vmitest.Option{moving, deleted}, launcher(exited(137, time.Minute, "")), secondPod(running), false, "", nil},
		"it is deleted after it has moved":              {vmi.PhaseSucceeded, []vmitest.Option{has, deleted}, nil, secondPod(exited(0, time.Second, "Shutdown: m"), in("second")), false, "", []string{"label second", "delete first", "release"}},
		"it is deleted, and its start found nothing":    {vmi.PhaseFailed, []vmitest.Option{lost, deleted}, launcher(exited(1, time.Minute, "StateMissing: m"), in("second")), nil, true, "", []string{"delete second", "release"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := stored(tt.phase, append([]vmitest.Option{keeps}, tt.options...)...)
			for _, p := range []*corev1.Pod{tt.source, tt.target} {
				if p == nil {
					continue
				}
				for i := range p.Spec.Volumes {
					if c := p.Spec.Volumes[i].PersistentVolumeClaim; c != nil && c.ClaimName == "second" {
						c.ClaimName = second(v, false).Name
					}
				}
			}
			o := observe(v, tt.source, tt.target)
			for _, c := range []*corev1.PersistentVolumeClaim{first(v), second(v, tt.labels)} {
				if string(c.UID) != tt.without {
					o.State = append(o.State, c)
				}
			}
			require.Equal(t, tt.want, onClaims(instance.Decide(o)))

			// What is of another VM stays as it is.
			for _, c := range o.State {
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: vmi.VirtualMachines.Kind, Name: v.Name, UID: types.UID("other")}}
			}
			theirs := onClaims(instance.Decide(o))
			require.NotContains(t, theirs, "delete first")
			require.NotContains(t, theirs, "label second")
		})
	}
}

func TestAStartUsesTheLastClaimForItsState(t *testing.T) {
	t.Parallel()
	created := func(claims ...func(*vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim) (string, []string) {
		v := stored(vmi.PhaseUnset, keeps)
		o := observe(v)
		for _, c := range claims {
			o.State = append(o.State, c(v))
		}
		for _, a := range instance.Decide(o).Actions {
			if c, ok := a.(scheduler.CreatePod); ok {
				return launched.StateClaim(c.Pod), c.Pod.Spec.Containers[0].Args
			}
		}
		return "", nil
	}
	moved := func(v *vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim { return second(v, true) }
	going := func(v *vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim {
		c := second(v, true)
		c.DeletionTimestamp = new(metav1.NewTime(now))
		return c
	}
	name := second(stored(vmi.PhaseUnset), true).Name
	for _, tt := range []struct {
		claims   []func(*vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim
		want     string
		requires bool
	}{
		{nil, "persistent-state-for-testvmi", false},
		{[]func(*vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim{first}, "persistent-state-for-testvmi", false},
		{[]func(*vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim{moved}, name, true},
		{[]func(*vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim{moved, first}, name, true},
		{[]func(*vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim{going, first}, "persistent-state-for-testvmi", false},
		{[]func(*vmi.VirtualMachineInstance) *corev1.PersistentVolumeClaim{going}, "", false}, // its condition says so
	} {
		claim, args := created(tt.claims...)
		require.Equal(t, tt.want, claim)
		require.Equal(t, tt.requires, slices.Contains(args, "--require-state"))
	}
}
