package pool

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/scheduler/revision"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// StrategyAnnotation is on a VM of a pool the run strategy of the template that it has: a VM
// with another one was started or stopped by its user.
const StrategyAnnotation = "podvisor.io/pool-run-strategy"

// RevisionPrefix begins the names of the ControllerRevisions of pools.
const RevisionPrefix = "revision-pool-"

// content is what a revision of a pool holds: all that decides what its VMs are.
type content struct {
	Spec struct {
		VirtualMachineTemplate *vmpool.VirtualMachineTemplateSpec `json:"virtualMachineTemplate"`
		NameGeneration         *vmpool.NameGeneration             `json:"nameGeneration,omitempty"`
	} `json:"spec"`
}

// Revision is the present template of the pool as a ControllerRevision. Its name follows from
// the pool's UID and the template, so a template that returns has the revision that it had.
func Revision(p *vmpool.VirtualMachinePool) (*appsv1.ControllerRevision, error) {
	var c content
	c.Spec.VirtualMachineTemplate, c.Spec.NameGeneration = p.Spec.VirtualMachineTemplate, p.Spec.NameGeneration
	raw, err := revision.Sorted(c)
	if err != nil {
		return nil, fmt.Errorf("store the template of VirtualMachinePool %s/%s: %w", p.Namespace, p.Name, err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: revisionName(p.UID, raw), Labels: map[string]string{vmi.AppLabel: vm.RevisionApp},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p, vmpool.VirtualMachinePools.GroupVersionKind)},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: p.Generation,
	}, nil
}

// lowerLetters are letters and digits of names.
var lowerLetters = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// revisionName is short enough for the value of a label.
func revisionName(pool types.UID, raw []byte) string {
	sum := sha256.Sum256(raw)
	return RevisionPrefix + string(pool) + "-" + lowerLetters.EncodeToString(sum[:])[:10]
}

// VM is the VM of the pool with the ordinal n. It has the labels of the template, without
// those that only Podvisor writes, and the revision of the template.
func VM(p *vmpool.VirtualMachinePool, n int) (*vmi.VirtualMachine, error) {
	r, err := Revision(p)
	if err != nil {
		return nil, err
	}
	return made(p, n, r.Name), nil
}

// made is the VM with the ordinal n of a revision.
func made(p *vmpool.VirtualMachinePool, n int, revision string) *vmi.VirtualMachine {
	t := p.Spec.VirtualMachineTemplate.DeepCopy()
	out := &vmi.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: Name(p, n), Labels: labelled(t.ObjectMeta.Labels, revision), Annotations: maps.Clone(t.ObjectMeta.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p, vmpool.VirtualMachinePools.GroupVersionKind)},
			Finalizers:      []string{vmi.VMFinalizer},
		},
		Spec: t.Spec,
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[StrategyAnnotation] = string(t.Spec.Strategy())
	indexDisks(&out.Spec, n, p.Spec.Preserves())
	if out.Spec.Template == nil {
		return out
	}
	out.Spec.Template.ObjectMeta.Labels = labelled(out.Spec.Template.ObjectMeta.Labels, revision)
	if g := p.Spec.NameGeneration; g != nil {
		index(&out.Spec.Template.Spec, n, g)
	}
	return out
}

// labelled are the labels of a user with the revision.
func labelled(labels map[string]string, revision string) map[string]string {
	out := vmi.UserLabels(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[vmi.PoolRevisionLabel] = revision
	return out
}

// indexDisks ends the names of the DataVolumes with the ordinal, also where volumes name them,
// and marks those that outlive their VM.
func indexDisks(s *vmi.VirtualMachineSpec, n int, kept bool) {
	names := map[string]bool{}
	for i := range s.DataVolumeTemplates {
		m := &s.DataVolumeTemplates[i].ObjectMeta
		names[m.Name] = true
		m.Name = indexed(m.Name, n)
		delete(m.Annotations, vm.KeptAnnotation)
		if kept {
			m.Annotations = with(m.Annotations, vm.KeptAnnotation, "true")
		}
	}
	if s.Template == nil {
		return
	}
	for i := range s.Template.Spec.Volumes {
		v := &s.Template.Spec.Volumes[i]
		if d := v.DataVolume; d != nil && names[d.Name] {
			d.Name = indexed(d.Name, n)
		}
		if c := v.PersistentVolumeClaim; c != nil && names[c.ClaimName] {
			c.ClaimName = indexed(c.ClaimName, n)
		}
	}
}

// with is the map with one more entry.
func with(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// index ends the names of the ConfigMaps and Secrets of volumes with the ordinal.
func index(s *vmi.VirtualMachineInstanceSpec, n int, g *vmpool.NameGeneration) {
	configMaps, secrets := isTrue(g.AppendIndexToConfigMapRefs), isTrue(g.AppendIndexToSecretRefs)
	end := func(name *string, wanted bool) {
		if wanted && *name != "" {
			*name = indexed(*name, n)
		}
	}
	ref := func(r *corev1.LocalObjectReference, wanted bool) {
		if r != nil {
			end(&r.Name, wanted)
		}
	}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if v.ConfigMap != nil {
			end(&v.ConfigMap.Name, configMaps)
		}
		if v.Secret != nil {
			end(&v.Secret.SecretName, secrets)
		}
		if v.Sysprep != nil {
			ref(v.Sysprep.ConfigMap, configMaps)
			ref(v.Sysprep.Secret, secrets)
		}
		if c := v.CloudInitNoCloud; c != nil {
			ref(c.UserDataSecretRef, secrets)
			ref(c.NetworkDataSecretRef, secrets)
		}
		if c := v.CloudInitConfigDrive; c != nil {
			ref(c.UserDataSecretRef, secrets)
			ref(c.NetworkDataSecretRef, secrets)
		}
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// changed is the VM with the revision, complete, and with the run strategy that its user
// gave it.
func changed(o Observed, m member, revision string) *vmi.VirtualMachine {
	to := defaults.VirtualMachine(made(o.Pool, m.ordinal, revision), o.Profile)
	if noted, ok := m.Annotations[StrategyAnnotation]; !ok || noted != string(m.Spec.Strategy()) {
		to.Spec.RunStrategy, to.Spec.Running = m.Spec.RunStrategy, m.Spec.Running
	}
	return to
}
