package onecopy

import (
	"errors"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

var (
	errAway     = errors.New("the connection is refused")
	errLost     = errors.New("the answer is lost")
	errConflict = errors.New("the object has changed")
	errGone     = errors.New("the object is gone")
)

// objects are what the API server has, or what a process has read of it. No object changes:
// another takes its place.
type objects struct {
	vmi   *vmi.VirtualMachineInstance
	move  *vmi.VirtualMachineInstanceMigration
	pods  map[types.UID]*corev1.Pod
	nodes map[string]*corev1.Node
}

func (o objects) read() objects {
	o.pods, o.nodes = maps.Clone(o.pods), maps.Clone(o.nodes)
	return o
}

// list are the pods.
func (o objects) list() []*corev1.Pod {
	var all []*corev1.Pod
	for _, uid := range []types.UID{sourcePod, targetPod} {
		if p := o.pods[uid]; p != nil {
			all = append(all, p)
		}
	}
	return all
}

// reach is the way of a process to the API server, in one request: whether it arrives, and
// whether its answer does.
func (w *world) reach(n *node) (arrives, answered error) {
	switch {
	case n != nil && (n.cut || !n.up):
		return errAway, nil
	case !w.chance(8):
		return nil, nil
	case w.chance(2):
		w.note("the API server refuses a request")
		return errAway, nil
	}
	w.note("the API server's answer is lost")
	return nil, errLost
}

func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

// object is one that processes write whole.
type object[T any] interface {
	*T
	metav1.Object
	DeepCopy() *T
}

// writeObject writes what the API server has of an object if it is the one that was read. The
// process knows what it has written.
func writeObject[T any, O object[T]](w *world, by *node, has, read *O, from O, edit func(O)) (O, error) {
	lost, unanswered := w.reach(by)
	switch is := *has; {
	case lost != nil:
		return from, lost
	case is == nil || is.GetUID() != from.GetUID():
		return from, errGone
	case is.GetResourceVersion() != from.GetResourceVersion():
		return from, errConflict
	}
	o := O((*has).DeepCopy())
	edit(o)
	o.SetResourceVersion(w.next())
	*has = o
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		*has = nil
	}
	if unanswered != nil {
		return from, unanswered
	}
	*read = *has
	return o, nil
}

func (w *world) writeVMI(by *node, read *objects, from *vmi.VirtualMachineInstance, edit func(*vmi.VirtualMachineInstance)) (*vmi.VirtualMachineInstance, error) {
	return writeObject(w, by, &w.api.vmi, &read.vmi, from, edit)
}

func (w *world) writeMove(read *objects, from *vmi.VirtualMachineInstanceMigration, edit func(*vmi.VirtualMachineInstanceMigration)) (*vmi.VirtualMachineInstanceMigration, error) {
	return writeObject(w, nil, &w.api.move, &read.move, from, edit)
}

// editPod changes a pod, as its kubelet or virt-controller does.
func (w *world) editPod(uid types.UID, edit func(*corev1.Pod)) {
	if p := w.api.pods[uid]; p != nil {
		p = p.DeepCopy()
		edit(p)
		p.ResourceVersion = w.next()
		w.api.pods[uid] = p
	}
}

// setCondition replaces a condition of a pod, and with the readiness gate whether it is ready.
func setCondition(p *corev1.Pod, c corev1.PodCondition) {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == c.Type {
			p.Status.Conditions[i] = c
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
}

// deletePod asks for the end of a pod. One on no node, and with force any, is gone at once.
func (w *world) deletePod(uid types.UID, force bool) {
	p := w.api.pods[uid]
	switch {
	case p == nil:
	case force || p.Spec.NodeName == "":
		delete(w.api.pods, uid)
	case p.DeletionTimestamp == nil:
		w.editPod(uid, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: w.now} })
	}
}
