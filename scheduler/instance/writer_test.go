package instance_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// An embedder's kind says that nothing is written to the claim.
func TestAVMIDoesNotWaitForAWriterOfNoneByAKindOfAnEmbedder(t *testing.T) {
	t.Parallel()
	kinds := volume.Kinds()
	read := kinds[slices.IndexFunc(kinds, func(k volume.Kind) bool { return k.Name == "persistentVolumeClaim" })]
	claim := read.Claim
	read.Claim = func(v vmi.Volume) volume.Claim {
		c := claim(v)
		c.ReadOnly = true
		return c
	}
	v := stored(vmi.PhaseUnset, vmitest.WithClaim("data", "data"))
	other := stored(vmi.PhaseRunning, vmitest.WithName("other"), vmitest.WithClaim("root", "data"))
	other.UID = "0"
	o := observe(v)
	o.Claims = map[string]*corev1.PersistentVolumeClaim{"data": claimOf("data")}
	o.Sharers = []instance.Sharer{{VMI: other}}
	waits := statusOf(t, instance.Decide(o))
	require.Equal(t, instance.ClaimInUse, waits.Condition(vmi.ConditionSynchronized).Reason)
	o.Config.VolumeKinds = append([]volume.Kind{read}, kinds...)
	require.IsType(t, scheduler.CreatePod{}, instance.Decide(o).Actions[0])
}

func last[T any](all []T) *T { return &all[len(all)-1] }

func TestAVMIWaitsForTheWriterOfItsClaim(t *testing.T) {
	t.Parallel()
	readOnly := func(v *vmi.VirtualMachineInstance) {
		last(v.Spec.Volumes).PersistentVolumeClaim.ReadOnly = true
		last(v.Spec.Domain.Devices.Disks).Disk = &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}
	}
	shareable := func(v *vmi.VirtualMachineInstance) { last(v.Spec.Domain.Devices.Disks).Shareable = new(true) }
	ephemeral := func(v *vmi.VirtualMachineInstance) {
		last(v.Spec.Volumes).VolumeSource = vmi.VolumeSource{Ephemeral: &vmi.EphemeralVolume{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}
	}
	// filesystem makes the claim's disk a file system.
	filesystem := func(v *vmi.VirtualMachineInstance) {
		d, name := &v.Spec.Domain.Devices, last(v.Spec.Volumes).Name
		d.Disks = slices.DeleteFunc(d.Disks, func(d vmi.Disk) bool { return d.Name == name })
		d.Filesystems = append(d.Filesystems, vmi.Filesystem{Name: name, Virtiofs: &vmi.FilesystemVirtiofs{}})
	}
	// both is a disk and a file system.
	both := func(v *vmi.VirtualMachineInstance) {
		d := &v.Spec.Domain.Devices
		d.Filesystems = append(d.Filesystems, vmi.Filesystem{Name: last(v.Spec.Volumes).Name, Virtiofs: &vmi.FilesystemVirtiofs{}})
	}
	phase := func(p vmi.Phase) func(*vmi.VirtualMachineInstance) {
		return func(v *vmi.VirtualMachineInstance) { v.Status.Phase = p }
	}
	stopped := func(reason string) func(*vmi.VirtualMachineInstance) {
		return func(v *vmi.VirtualMachineInstance) {
			v.Status.Phase = vmi.PhasePending
			v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: reason}, metav1.Now())
		}
	}
	younger := func(v *vmi.VirtualMachineInstance) {
		v.CreationTimestamp = metav1.NewTime(v.CreationTimestamp.Add(time.Hour))
	}
	readFolder := func(v *vmi.VirtualMachineInstance) {
		last(v.Spec.Volumes).PersistentVolumeClaim.ReadOnly = true
		filesystem(v)
	}
	none := func(*vmi.VirtualMachineInstance) {}
	for name, tt := range map[string]struct {
		mine, its, also func(*vmi.VirtualMachineInstance)
		pod             bool
		waits           bool
		as              string // what the claim is to the other; empty: a disk
	}{
		"the other runs":                         {mine: none, its: phase(vmi.PhaseRunning), waits: true},
		"the other is about to run":              {mine: none, its: phase(vmi.PhaseScheduling), waits: true},
		"the other has ended":                    {mine: none, its: phase(vmi.PhaseSucceeded)},
		"the other has ended, but its pod runs":  {mine: none, its: phase(vmi.PhaseFailed), pod: true, waits: true},
		"the other runs and is deleted":          {mine: none, its: phase(vmi.PhaseRunning), also: deleted, waits: true},
		"the other failed and may still run":     {mine: none, its: phase(vmi.PhaseFailed), also: unknown("LauncherUnresponsive", "x"), waits: true},
		"the other never ran and is deleted":     {mine: none, its: phase(vmi.PhaseScheduling), also: deleted},
		"the other was made before":              {mine: none, its: none, waits: true},
		"the other was made later":               {mine: none, its: younger},
		"the other was made later and has a pod": {mine: none, its: younger, pod: true, waits: true},
		"the other cannot start":                 {mine: none, its: stopped(instance.InvalidSpec)},
		"the other waits for a third":            {mine: none, its: stopped(instance.ClaimInUse), waits: true},
		"both only read":                         {mine: readOnly, its: readOnly, also: phase(vmi.PhaseRunning)},
		"both are above the claim":               {mine: ephemeral, its: ephemeral, also: phase(vmi.PhaseRunning)},
		"one writes below the other":             {mine: ephemeral, its: phase(vmi.PhaseRunning), waits: true},
		"one would write below the other":        {mine: none, its: ephemeral, also: phase(vmi.PhaseRunning), waits: true},
		"one only reads what the other writes":   {mine: readOnly, its: phase(vmi.PhaseRunning), waits: true},
		"one shares and the other does not":      {mine: none, its: shareable, also: phase(vmi.PhaseRunning), waits: true},
		"both mount its file system":             {mine: filesystem, its: filesystem, also: phase(vmi.PhaseRunning)},
		"one has a disk in the file system":      {mine: none, its: filesystem, also: phase(vmi.PhaseRunning), waits: true, as: "file system"},
		"one mounts where the other has a disk":  {mine: filesystem, its: phase(vmi.PhaseRunning), waits: true},
		"one has a disk and mounts it too":       {mine: filesystem, its: both, also: phase(vmi.PhaseRunning), waits: true},
		"one reads the file system of a disk":    {mine: readFolder, its: readOnly, also: phase(vmi.PhaseRunning)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := stored(vmi.PhaseUnset, vmitest.WithClaim("data", "data"), tt.mine)
			v.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0))
			other := stored(vmi.PhaseUnset, vmitest.WithName("other"), vmitest.WithClaim("root", "data"))
			other.UID, other.CreationTimestamp = "0", v.CreationTimestamp
			tt.its(other)
			if tt.also != nil {
				tt.also(other)
			}
			o := observe(v)
			o.Claims = map[string]*corev1.PersistentVolumeClaim{"data": claimOf("data")}
			s := instance.Sharer{VMI: other}
			if tt.pod {
				s.Pod = launcher()
			}
			o.Sharers = []instance.Sharer{s}
			p := instance.Decide(o)
			if !tt.waits {
				require.IsType(t, scheduler.CreatePod{}, p.Actions[0])
				return
			}
			status := statusOf(t, p)
			require.Equal(t, vmi.PhasePending, status.Phase)
			c := status.Condition(vmi.ConditionSynchronized)
			require.Equal(t, instance.ClaimInUse, c.Reason)
			require.Equal(t, "volume data: PersistentVolumeClaim data is a "+cmp.Or(tt.as, "disk")+" of VMI other, and only one VMI at a time may write to a claim: stop that VMI, and this one starts, or use another claim", c.Message)
			require.Len(t, p.Actions, 2, "it is written and said once")
			v.Status = status
			require.Empty(t, instance.Decide(o).Actions)
			o.Sharers = nil
			require.IsType(t, scheduler.CreatePod{}, instance.Decide(o).Actions[0], "it starts when the other is gone")
		})
	}
}
