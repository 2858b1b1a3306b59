package revision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// App is the AppLabel of every revision of a VM or a pool.
const App = "virtual-machine"

// Sorted is JSON with sorted keys, as the API server writes it after a patch. The content
// of a revision is immutable to the byte: with keys in another order the garbage collector
// could not remove its owner.
func Sorted(s any) ([]byte, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// Holding is the ControllerRevision that holds an instance type or a preference for the VM.
func Holding(v *vmi.VirtualMachine, o vmi.Object) (*appsv1.ControllerRevision, error) {
	d, err := definitionOf(o)
	if err != nil {
		return nil, err
	}
	c := o.DeepCopyObject().(vmi.Object)
	c.SetLabels(nil)
	c.SetAnnotations(nil)
	c.SetFinalizers(nil)
	c.SetOwnerReferences(nil)
	c.SetManagedFields(nil)
	c.GetObjectKind().SetGroupVersionKind(d.GroupVersionKind)
	raw, err := Sorted(c)
	if err != nil {
		return nil, fmt.Errorf("store %s %s for VirtualMachine %s/%s: %w", d.Kind, o.GetName(), v.Namespace, v.Name, err)
	}
	generation := strconv.FormatInt(o.GetGeneration(), 10)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace,
			Name:      fmt.Sprintf("%s-%s-%s-%s-%s", v.Name, o.GetName(), d.Version, o.GetUID(), generation),
			Labels: map[string]string{
				vmi.AppLabel:                    App,
				instancetype.ObjectNameLabel:    o.GetName(),
				instancetype.ObjectKindLabel:    d.Kind,
				instancetype.ObjectUIDLabel:     string(o.GetUID()),
				instancetype.ObjectVersionLabel: d.Version, instancetype.ObjectGenerationLabel: generation,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)},
		},
		Data: runtime.RawExtension{Raw: raw},
	}, nil
}

// Same says that two revisions have the same name, labels and owners, and hold the same bytes.
// Two texts that one decoder reads in the same way are not the same: with a key twice, or with
// capital letters, another one reads something else.
func Same(a, b *appsv1.ControllerRevision) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && maps.Equal(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) && bytes.Equal(a.Data.Raw, b.Data.Raw)
}

func definitionOf(o vmi.Object) (vmi.Definition, error) {
	for _, d := range instancetype.Definitions() {
		if fmt.Sprintf("%T", d.New()) == fmt.Sprintf("%T", o) {
			return d, nil
		}
	}
	return vmi.Definition{}, fmt.Errorf("%T is neither an instance type nor a preference", o)
}
