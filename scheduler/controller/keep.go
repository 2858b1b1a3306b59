package controller

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// What the caches keep of objects is what is read here and in the packages that decide.
// Each function below drops the rest, and may be called again for what it returned. The
// metadata that identify an object are always kept, and so is each list of which an element
// is written: a patch replaces a list as a whole. TestADecisionIsTheSameByWhatIsKept
// decides on whole objects and on kept ones.

// keeper is what of objects is kept.
type keeper struct {
	// kinds are the kinds of volumes of the launcher.
	kinds []volume.Kind
	words words
	// launchers are the containers of launcher pods, and gates the readiness gates of pods, by the
	// one that they have.
	launchers shared[launcherContainer, []corev1.Container]
	gates     shared[corev1.PodConditionType, []corev1.PodReadinessGate]
}

// launcherContainer is what is read of the container of a launcher.
type launcherContainer struct {
	image              string
	startup, readiness bool // which probes it has
}

// pod keeps of a pod what package scheduler/instance reads.
func (k *keeper) pod(p *corev1.Pod) {
	m := p.ObjectMeta
	p.ObjectMeta = metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp, DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds, OwnerReferences: m.OwnerReferences,
		Labels: m.Labels, Annotations: m.Annotations,
	}
	p.Spec = corev1.PodSpec{
		NodeName: p.Spec.NodeName, NodeSelector: p.Spec.NodeSelector, Volumes: keepVolumes(p.Spec.Volumes),
		SchedulerName: p.Spec.SchedulerName, Containers: k.containers(p.Spec.Containers), ReadinessGates: k.readinessGates(p.Spec.ReadinessGates),
		TerminationGracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds,
	}
	launched.Keep(p)
	s := p.Status
	p.Status = corev1.PodStatus{
		Phase: s.Phase, Reason: s.Reason, Message: s.Message, QOSClass: s.QOSClass, Conditions: keepConditions(s.Conditions, p.Spec.ReadinessGates),
		InitContainerStatuses: keepStatuses(s.InitContainerStatuses), ContainerStatuses: keepStatuses(s.ContainerStatuses),
	}
	k.words.pod(p)
}

// keepVolumes keeps those in claims.
func keepVolumes(all []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for _, v := range all {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v)
		}
	}
	return slices.Clip(out)
}

// containers keeps the image of the launcher's container, and that it has a startup probe, and one
// of readiness beside it.
func (k *keeper) containers(all []corev1.Container) []corev1.Container {
	for _, c := range all {
		if c.Name == vmi.ComputeContainer {
			has := launcherContainer{c.Image, c.StartupProbe != nil, c.StartupProbe != nil && c.ReadinessProbe != nil}
			return k.launchers.get(has, func() []corev1.Container {
				kept := corev1.Container{Name: c.Name, Image: c.Image}
				if has.startup {
					kept.StartupProbe = &corev1.Probe{}
				}
				if has.readiness {
					kept.ReadinessProbe = &corev1.Probe{}
				}
				return []corev1.Container{kept}
			})
		}
	}
	return nil
}

// readinessGates keeps all. Most pods have the same one.
func (k *keeper) readinessGates(all []corev1.PodReadinessGate) []corev1.PodReadinessGate {
	if len(all) != 1 {
		return all
	}
	return k.gates.get(all[0].ConditionType, func() []corev1.PodReadinessGate { return all })
}

// keepConditions keeps those that a decision asks for, and those of the readiness gates.
func keepConditions(all []corev1.PodCondition, gates []corev1.PodReadinessGate) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, c := range all {
		gate := slices.ContainsFunc(gates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == c.Type })
		switch c.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.ContainersReady, corev1.DisruptionTarget:
		default:
			if !gate {
				continue
			}
		}
		c.LastProbeTime, c.ObservedGeneration = metav1.Time{}, 0
		out = append(out, c)
	}
	return slices.Clip(out)
}

func keepStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	for i, s := range all {
		all[i] = corev1.ContainerStatus{Name: s.Name, Ready: s.Ready, Started: keepStarted(s.Started), State: keepState(s.State), LastTerminationState: keepState(s.LastTerminationState)}
		if s.State.Waiting != nil {
			all[i].Image = s.Image
		}
	}
	return all
}

// started is what all containers have that have started.
var started = new(true)

func keepStarted(s *bool) *bool {
	if s != nil && *s {
		return started
	}
	return nil
}

func keepState(s corev1.ContainerState) corev1.ContainerState {
	if t := s.Terminated; t != nil {
		t.ContainerID, t.StartedAt, t.Signal = "", metav1.Time{}, 0
	}
	return s
}

// keepClaim keeps of a claim what packages scheduler/instance and scheduler/pod read.
func keepClaim(c *corev1.PersistentVolumeClaim) {
	reconcile.WithoutApplied(c)
	c.Finalizers, c.GenerateName = nil, ""
	if c.Labels[vmi.StateLabel] == "" && c.Labels[vmi.MigrationNameLabel] == "" {
		c.OwnerReferences = keepController(c.OwnerReferences) // the names of VMs of a pool depend on it
	}
	c.Status.Conditions = nil
}

// keepController keeps which object controls another.
func keepController(all []metav1.OwnerReference) []metav1.OwnerReference {
	for _, r := range all {
		if r.Controller != nil && *r.Controller {
			return []metav1.OwnerReference{{Kind: r.Kind, Name: r.Name, UID: r.UID, Controller: r.Controller}}
		}
	}
	return nil
}

// keepNode keeps of a node what says whether pods run on it.
func keepNode(n *corev1.Node) {
	n.Labels, n.Annotations, n.Finalizers = nil, nil, nil
	n.Spec = corev1.NodeSpec{Taints: n.Spec.Taints}
	ready := slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type != corev1.NodeReady })
	for i := range ready {
		ready[i].LastHeartbeatTime = metav1.Time{}
	}
	n.Status = corev1.NodeStatus{Conditions: ready}
}

// keepRevision keeps of a start revision what names it. What it holds is read from the API
// server when it is needed: see Controller.compared.
func keepRevision(r *appsv1.ControllerRevision) {
	r.Annotations, r.Data.Raw = nil, nil
}

// keepVM keeps of a VM all that its next start needs. Its own labels and annotations
// mean nothing here: those of its VMIs are in the template. A pool selects its VMs by them.
func keepVM(v *vmi.VirtualMachine) {
	if len(poolOf(v)) == 0 {
		v.Labels = nil
	}
	keepAnnotations(v, packed, pool.StrategyAnnotation)
	pack(v, &v.Spec.Template)
}

// keepSet keeps of a replica set all that its next VMI needs.
func keepSet(s *vmi.VirtualMachineInstanceReplicaSet) {
	s.Labels = nil
	keepAnnotations(s, packed)
	pack(s, &s.Spec.Template)
}

// keepPool keeps of a pool all that its next VM needs.
func keepPool(p *vmpool.VirtualMachinePool) {
	p.Labels = nil
	keepAnnotations(p, packed)
	if t := p.Spec.VirtualMachineTemplate; t != nil {
		pack(p, &t.Spec.Template)
	}
}

// keepAnnotations keeps those with the keys, and all of an object that could not be decoded,
// which they say. Annotations that were there stay a map: a patch may have to make one.
func keepAnnotations(o metav1.Object, keys ...string) {
	all := o.GetAnnotations()
	if all == nil || vmi.Unreadable(o) != nil {
		return
	}
	out := map[string]string{}
	for _, k := range keys {
		if v, ok := all[k]; ok {
			out[k] = v
		}
	}
	o.SetAnnotations(out)
}

// instance keeps of a VMI what is read after it was handed over: nothing renders its pod
// again. Until then everything is read.
func (k *keeper) instance(v *vmi.VirtualMachineInstance) {
	reconcile.WithoutApplied(v)
	if !isReduced(v) {
		return
	}
	keepAnnotations(v, slices.Concat(observedAnnotations, []string{
		vmi.VMGenerationAnnotation, vmi.StartRevisionAnnotation, replicaset.FailuresAnnotation, replicaset.TemplateAnnotation, vmi.EvictionSourceAnnotation,
	})...)
	keepInstanceSpec(&v.Spec, k.kinds)
	s := v.Status
	v.Status = vmi.VirtualMachineInstanceStatus{
		Phase: s.Phase, PhaseTransitionTimestamps: s.PhaseTransitionTimestamps, Reason: s.Reason, NodeName: s.NodeName, ActivePods: s.ActivePods,
		Conditions: s.Conditions, FSFreezeStatus: s.FSFreezeStatus, LauncherContainerImageVersion: s.LauncherContainerImageVersion,
		EvacuationNodeName: s.EvacuationNodeName, MigrationState: s.MigrationState, VirtualMachineRevisionName: s.VirtualMachineRevisionName,
		Machine: s.Machine,
	}
	for _, i := range s.Interfaces {
		v.Status.Interfaces = append(v.Status.Interfaces, vmi.InterfaceStatus{Name: i.Name, InterfaceName: i.InterfaceName, IP: i.IP})
	}
	v.Status.Interfaces = slices.Clip(v.Status.Interfaces)
	if slices.ContainsFunc(s.VolumeStatus, func(s vmi.VolumeStatus) bool { return s.PersistentVolumeClaimInfo != nil }) {
		v.Status.VolumeStatus = s.VolumeStatus // it is written when a claim has grown
	}
	k.words.instance(v)
}

// isReduced reports whether a keeper drops of such a VMI what its pod is rendered by.
func isReduced(v *vmi.VirtualMachineInstance) bool {
	switch v.Status.Phase {
	case vmi.PhaseUnset, vmi.PhasePending, vmi.PhaseScheduling:
		return false
	}
	return true
}

// wholeInstance reports whether the status of a VMI in the cache is all that is stored.
func wholeInstance(v *vmi.VirtualMachineInstance) bool { return !isReduced(v) }

func keepInstanceSpec(s *vmi.VirtualMachineInstanceSpec, kinds []volume.Kind) {
	was := *s
	*s = vmi.VirtualMachineInstanceSpec{
		Networks: was.Networks, TerminationGracePeriodSeconds: was.TerminationGracePeriodSeconds,
		EvictionStrategy: was.EvictionStrategy, StartStrategy: was.StartStrategy,
	}
	if was.LivenessProbe != nil {
		s.LivenessProbe = &vmi.Probe{}
	}
	if f := was.Domain.Firmware; f != nil && f.Bootloader != nil {
		s.Domain.Firmware = &vmi.Firmware{Bootloader: f.Bootloader}
	}
	from, to := &was.Domain.Devices, &s.Domain.Devices
	to.TPM = from.TPM
	inClaim := map[string]bool{}
	for _, v := range was.Volumes {
		if k, err := volume.Of(v, kinds); v.Claim() != "" || err == nil && k.Claim != nil {
			inClaim[v.Name] = true
			s.Volumes = append(s.Volumes, v)
		}
	}
	for _, d := range from.Disks {
		if inClaim[d.Name] {
			to.Disks = append(to.Disks, vmi.Disk{Name: d.Name, Shareable: d.Shareable})
		}
	}
	for _, f := range from.Filesystems {
		if inClaim[f.Name] {
			to.Filesystems = append(to.Filesystems, vmi.Filesystem{Name: f.Name})
		}
	}
	// All of them, in their order: the link of one is changed by its place.
	for _, i := range from.Interfaces {
		to.Interfaces = append(to.Interfaces, vmi.Interface{
			Name: i.Name, InterfaceBinding: i.InterfaceBinding, MacAddress: i.MacAddress, State: i.State, Model: i.Model,
		})
	}
}
