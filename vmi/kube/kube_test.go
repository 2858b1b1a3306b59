package kube

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/podvisor/podvisor/vmi"
)

// Every type of package vmi that stands for one of Kubernetes' own has the same
// fields with the same JSON, but for those that KubeVirt's API does not have.
func TestTheTypesAreThoseOfKubernetes(t *testing.T) {
	for name, tt := range map[string]struct {
		ours, theirs any
		without      []string
	}{
		"affinity":        {ours: vmi.Affinity{}, theirs: corev1.Affinity{}},
		"toleration":      {ours: vmi.Toleration{}, theirs: corev1.Toleration{}},
		"spread":          {ours: vmi.TopologySpreadConstraint{}, theirs: corev1.TopologySpreadConstraint{}},
		"dns":             {ours: vmi.DNSConfig{}, theirs: corev1.PodDNSConfig{}},
		"resources":       {ours: vmi.ResourceList{}, theirs: corev1.ResourceList{}},
		"claim":           {ours: vmi.PersistentVolumeClaimSpec{}, theirs: corev1.PersistentVolumeClaimSpec{}},
		"http":            {ours: vmi.HTTPGetAction{}, theirs: corev1.HTTPGetAction{}, without: []string{"protocol"}},
		"tcp":             {ours: vmi.TCPSocketAction{}, theirs: corev1.TCPSocketAction{}},
		"exec":            {ours: vmi.ExecAction{}, theirs: corev1.ExecAction{}},
		"downward API":    {ours: vmi.DownwardAPIVolumeFile{}, theirs: corev1.DownwardAPIVolumeFile{}, without: []string{"user"}},
		"local reference": {ours: vmi.LocalObjectReference{}, theirs: corev1.LocalObjectReference{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, differences("", reflect.TypeOf(tt.ours), reflect.TypeOf(tt.theirs), tt.without))
		})
	}
}

// leaves are types of others that both sides use, or that are one value in JSON.
var leaves = []reflect.Type{
	reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.LabelSelector](),
	reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[metav1.TypeMeta](),
}

// differences are the fields in which the JSON of the types differs.
func differences(path string, ours, theirs reflect.Type, without []string) []string {
	if ours == theirs && (slices.Contains(leaves, ours) || ours.PkgPath() == "") {
		return nil
	}
	if ours.Kind() != theirs.Kind() {
		return []string{path + " is " + ours.String() + " and not " + theirs.String()}
	}
	switch ours.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return differences(path, ours.Elem(), theirs.Elem(), without)
	case reflect.Struct:
		var l []string
		a, b := fields(ours), fields(theirs)
		for name, theirs := range b {
			f, ok := a[name]
			if !ok {
				if !slices.Contains(without, path+name) {
					l = append(l, path+name+" is missing")
				}
				continue
			}
			l = append(l, differences(path+name+".", f, theirs, without)...)
			delete(a, name)
		}
		for name := range a {
			l = append(l, path+name+" is of our making")
		}
		return l
	}
	return nil
}

// fields are the fields of a struct by their names in JSON.
func fields(t reflect.Type) map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		m[name] = f.Type
	}
	return m
}

func TestNothingIsLostThereAndBack(t *testing.T) {
	f := randfill.NewWithSeed(1).NilChance(0.3).NumElements(1, 3).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1<<40), resource.DecimalSI)
		},
	)
	for range 200 {
		there(t, f, Affinity, FromAffinity)
		there(t, f, Tolerations, FromTolerations)
		there(t, f, TopologySpreadConstraints, FromTopologySpreadConstraints)
		there(t, f, DNSConfig, FromDNSConfig)
		there(t, f, ResourceList, FromResourceList)
		there(t, f, PersistentVolumeClaimSpec, FromPersistentVolumeClaimSpec)
	}
}

func there[Ours, Theirs any](t *testing.T, f *randfill.Filler, to func(Ours) Theirs, from func(Theirs) Ours) {
	t.Helper()
	var v Ours
	f.Fill(&v)
	require.Equal(t, convert[any](v), convert[any](from(to(v))))
}

func TestNilStaysNil(t *testing.T) {
	require.Nil(t, Affinity(nil))
	require.Nil(t, Tolerations(nil))
	require.Nil(t, FromTopologySpreadConstraints(nil))
	require.Nil(t, ResourceList(nil))
}
