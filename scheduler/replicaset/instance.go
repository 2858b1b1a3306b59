package replicaset

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Annotations of the VMIs of a set.
const (
	// FailuresAnnotation is how many VMIs in a row failed before this one, in its place of
	// the set: see steadyAfter. It survives the process, and is not on a VMI whose
	// predecessor did not fail.
	FailuresAnnotation = "podvisor.io/start-failures"
	// TemplateAnnotation is which template of its set a VMI was made from: a hash of it. A
	// plan adds it to what Instance makes.
	TemplateAnnotation = "podvisor.io/template-hash"
)

// Instance is a VMI of the set, after so many failures in its place. It has the labels
// of the template, without those that only Podvisor writes.
func Instance(s *vmi.VirtualMachineInstanceReplicaSet, name string, failures int) *vmi.VirtualMachineInstance {
	t := s.Spec.Template.DeepCopy()
	out := &vmi.VirtualMachineInstance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name, Labels: vmi.UserLabels(t.ObjectMeta.Labels), Annotations: t.ObjectMeta.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, vmi.VirtualMachineInstanceReplicaSets.GroupVersionKind)},
			Finalizers:      []string{vmi.Finalizer},
		},
		Spec: t.Spec,
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	delete(out.Annotations, FailuresAnnotation)
	if failures > 0 {
		out.Annotations[FailuresAnnotation] = strconv.Itoa(failures)
	}
	return out
}

// lowerLetters are letters and digits of names.
var lowerLetters = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// maxName is the longest name of a VMI of a set. It is the guest's host name, which
// has at most so many characters and would be the same for all if it were cut.
const maxName = 63

// freeNames are the next names of VMIs of the set that no VMI has.
func freeNames(s *vmi.VirtualMachineInstanceReplicaSet, taken map[string]bool, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ {
		if name := Name(s, i); !taken[name] {
			out = append(out, name)
		}
	}
	return out
}

// Name is the name of the VMI in the ith place, from 0 on: that of the set, and what follows
// from its UID and the place.
func Name(s *vmi.VirtualMachineInstanceReplicaSet, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", s.UID, i))
	end := "-" + lowerLetters.EncodeToString(sum[:])[:6]
	name := strings.ReplaceAll(s.Name, ".", "-") // a host name ends at the first dot
	return strings.TrimRight(name[:min(len(name), maxName-len(end))], "-") + end
}
