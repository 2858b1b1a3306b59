package replicaset

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Instance is a VMI of the set, after so many failed starts in its place.
func Instance(s *vmi.VirtualMachineInstanceReplicaSet, name string, failures int) *vmi.VirtualMachineInstance {
	t := s.Spec.Template.DeepCopy()
	out := &vmi.VirtualMachineInstance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name, Labels: t.ObjectMeta.Labels, Annotations: maps.Clone(t.ObjectMeta.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, vmi.VirtualMachineInstanceReplicaSets.GroupVersionKind)},
			Finalizers:      []string{vmi.Finalizer},
		},
		Spec: t.Spec,
	}
	if failures > 0 {
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[FailuresAnnotation] = strconv.Itoa(failures)
	}
	return out
}

// lowerLetters are letters and digits of names.
var lowerLetters = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// mostName is how long the name of a VMI can be.
const mostName = 253

// freeNames are the next names of VMIs of the set that no VMI has.
func freeNames(s *vmi.VirtualMachineInstanceReplicaSet, taken map[string]bool, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ {
		if name := nameOf(s, i); !taken[name] {
			out = append(out, name)
		}
	}
	return out
}

// nameOf is the name of the VMI in the ith place: that of the set, and what follows
// from its UID and the place.
func nameOf(s *vmi.VirtualMachineInstanceReplicaSet, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", s.UID, i))
	end := "-" + lowerLetters.EncodeToString(sum[:])[:6]
	return strings.TrimRight(s.Name[:min(len(s.Name), mostName-len(end))], "-.") + end
}
