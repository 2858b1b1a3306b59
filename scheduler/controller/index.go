package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// Names of the indexes by which the controllers find objects. The values of IndexClaim
// are keys, namespace/name.
const (
	// IndexNode finds VMIs and pods by the name of their node.
	IndexNode = "node"
	// IndexClaim finds VMIs and VMs by the claims that their volumes are in.
	IndexClaim = "claim"
	// IndexUID finds VMIs by their UID.
	IndexUID = "uid"
	// IndexMAC finds VMIs by their networks with the MAC addresses there, as
	// instance.MACAddressKeys writes them.
	IndexMAC = "mac"
)

// indexInstance finds pods by the VMI that they were made for, indexCreator by its UID, and
// indexMounted by the claims of their volumes.
const (
	indexInstance = "instance"
	indexCreator  = "creator"
	indexMounted  = "mounted"
)

// indexState finds claims for the state of VMIs by the label that says of which.
const indexState = "state"

// indexVM finds start revisions by their VM, as [controlledKey] has it.
const indexVM = "vm"

// indexPool finds VMs and revisions by the pool that controls them, as [controlledKey] has it.
const indexPool = "pool"

// controlledKey is what an index has for the objects that o controls: its namespace and UID. A
// user can write any UID into objects of other namespaces.
func controlledKey(o metav1.Object) string {
	return reconcile.KeyIn(o.GetNamespace(), string(o.GetUID()))
}

// controlledBy is the [controlledKey] of the object of this kind that controls o, if one does.
func controlledBy(o metav1.Object, kind vmi.Definition) []string {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() != kind.GroupKind() {
		return nil
	}
	return reconcile.KeysIn(o.GetNamespace(), string(ref.UID))
}

// poolOf is the [controlledKey] of the pool that controls the object, if one does.
func poolOf(o metav1.Object) []string { return controlledBy(o, vmpool.VirtualMachinePools.Definition) }

// startOf is the [controlledKey] of the VM that the start revision is of: the one in its name, also
// after a deletion that orphans it. Revisions of others may have such names: a StatefulSet makes
// some for its user.
func startOf(r *appsv1.ControllerRevision) []string {
	uid := vmi.StartedVM(r.Name)
	if uid == "" {
		return nil
	}
	if metav1.GetControllerOfNoCopy(r) != nil {
		return controlledBy(r, vmi.VirtualMachines.Definition)
	}
	return reconcile.KeysIn(r.Namespace, string(uid))
}

// InstanceIndexers find VMIs by IndexNode, IndexUID, IndexMAC and IndexClaim, in an informer
// of the caller's too: give them to its AddIndexers before it runs. So do the other functions
// that return indexers.
func InstanceIndexers() cache.Indexers {
	return cache.Indexers{
		IndexNode: index(func(v *vmi.VirtualMachineInstance) []string { return nonEmpty(v.Status.NodeName) }),
		IndexUID:  index(func(v *vmi.VirtualMachineInstance) []string { return nonEmpty(string(v.UID)) }),
		IndexMAC:  index(instance.MACAddressKeys),
		IndexClaim: index(func(v *vmi.VirtualMachineInstance) []string {
			return reconcile.KeysIn(v.Namespace, instance.ClaimNames(v)...)
		}),
	}
}

// VMIndexers find VMs by IndexClaim.
func VMIndexers() cache.Indexers {
	return cache.Indexers{
		indexNamed: index(named),
		indexPool:  index(func(v *vmi.VirtualMachine) []string { return poolOf(v) }),
		IndexClaim: index(func(v *vmi.VirtualMachine) []string { return reconcile.KeysIn(v.Namespace, claimNames(v)...) }),
	}
}

// podIndexers find launcher pods by indexInstance, indexCreator, indexMounted and IndexNode.
func podIndexers() cache.Indexers {
	return cache.Indexers{
		indexInstance: index(madeFor),
		indexCreator:  index(func(p *corev1.Pod) []string { return nonEmpty(string(launched.Creator(p))) }),
		indexMounted:  index(mounted),
		IndexNode:     index(onNode),
	}
}

// mounted are the keys of the claims of a launcher pod.
func mounted(p *corev1.Pod) []string {
	if launched.Creator(p) == "" {
		return nil
	}
	var names []string
	for _, v := range p.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil {
			names = append(names, c.ClaimName)
		}
	}
	return reconcile.KeysIn(p.Namespace, names...)
}

// claimIndexers find claims by indexState.
func claimIndexers() cache.Indexers {
	return cache.Indexers{indexState: index(func(c *corev1.PersistentVolumeClaim) []string {
		if name := c.Labels[vmi.StateLabel]; name != "" {
			return reconcile.KeysIn(c.Namespace, name)
		}
		return nil
	})}
}

// revisionIndexers find start revisions by indexVM, those of what VMs name by indexSized, and
// those of pools by indexPool.
func revisionIndexers() cache.Indexers {
	return cache.Indexers{
		indexSized: index(sized),
		indexPool:  index(func(r *appsv1.ControllerRevision) []string { return poolOf(r) }),
		indexVM:    index(startOf),
	}
}

func onNode(p *corev1.Pod) []string { return nonEmpty(p.Spec.NodeName) }

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// index is an index of objects T by the values of a function.
func index[T any](values func(T) []string) cache.IndexFunc {
	return func(o any) ([]string, error) {
		t, ok := o.(T)
		if !ok {
			return nil, nil
		}
		return values(t), nil
	}
}
