package admission

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/jsontree"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// differences are the fields in which the VMI that was made differs from the one that
// was asked for, as paths, without their values, which may be secret. The admission of
// others may set the labels and annotations that are among the fields, as in launcher pods.
func differences(asked, made *vmi.VirtualMachineInstance, p defaults.Profile, fields []string) []string {
	asked = asked.DeepCopy()
	asked.UID = made.UID // of which identities are made
	a, b := defaults.Instance(asked, p), defaults.Instance(made, p)
	var out []string
	for what, notes := range map[string][2]map[string]string{
		"labels": {a.Labels, b.Labels}, "annotations": {a.Annotations, b.Annotations},
	} {
		out = append(out, differentNotes("metadata."+what, notes[0], notes[1])...)
	}
	out = slices.DeleteFunc(out, pod.Admitted{Fields: fields}.Sets)
	slices.Sort(out)
	free(&a.Spec)
	free(&b.Spec)
	from, err := jsontree.Of(&a.Spec)
	to, err2 := jsontree.Of(&b.Spec)
	if err != nil || err2 != nil {
		return []string{"spec"}
	}
	for _, f := range changes(field.NewPath("spec"), from, to, []any{from, to}) {
		out = append(out, f.String())
	}
	return out[:min(len(out), maxChanges)]
}

// free leaves out what admission of others may set in a VMI as in a pod, and which
// neither shows it other data nor connects it elsewhere: where it runs, how large it is,
// and how it starts and ends.
func free(s *vmi.VirtualMachineInstanceSpec) {
	s.NodeSelector, s.Affinity, s.Tolerations, s.TopologySpreadConstraints = nil, nil, nil, nil
	s.SchedulerName = ""
	s.StartStrategy, s.EvictionStrategy, s.TerminationGracePeriodSeconds = nil, nil, nil
	s.Domain.Resources, s.Domain.CPU, s.Domain.Memory = vmi.ResourceRequirements{}, nil, nil
}

// bookkeeping are the annotations of a VMI that its VirtualMachine or set keeps its own facts
// in.
var bookkeeping = []string{vmi.VMGenerationAnnotation, vmi.StartRevisionAnnotation, replicaset.FailuresAnnotation, replicaset.TemplateAnnotation}

// differentNotes are the labels or annotations in which two VMIs differ. A launcher pod has
// those of its VMI: its labels make it an endpoint of Services, and its annotations say to
// the networks what to attach. A VMI has the generation of its VirtualMachine or the hash of
// its set's template, which may be changed meanwhile, which revision it was started from, and
// how often its place in a set has failed.
func differentNotes(at string, asked, made map[string]string) []string {
	all := maps.Clone(asked)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, made)
	var out []string
	for k := range all {
		a, was := asked[k]
		b, is := made[k]
		if !slices.Contains(bookkeeping, k) && (a != b || was != is) {
			out = append(out, fmt.Sprintf("%s[%s]", at, k))
		}
	}
	return out
}
