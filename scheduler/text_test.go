package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAPlanIsALineForEachAction(t *testing.T) {
	named := metav1.ObjectMeta{Name: "a"}
	v := vmitest.New(vmitest.WithName("a"), vmitest.WithPhase(vmi.PhaseRunning))
	v.Status.NodeName = "n1"
	vm := &vmi.VirtualMachine{ObjectMeta: named}
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	m.Spec.VMIName = "a"
	d := &unstructured.Unstructured{}
	d.SetName("a")
	for want, a := range map[string]scheduler.Action{
		"add finalizer f":                       scheduler.AddFinalizer{Finalizer: "f"},
		"remove finalizer f":                    scheduler.RemoveFinalizer{Finalizer: "f"},
		"set label k=v":                         scheduler.SetLabel{Key: "k", Value: "v"},
		"remove label k":                        scheduler.RemoveLabel{Key: "k"},
		"create pod a":                          scheduler.CreatePod{Pod: &corev1.Pod{ObjectMeta: named}},
		"create claim a":                        scheduler.CreateClaim{Claim: &corev1.PersistentVolumeClaim{ObjectMeta: named}},
		"delete pod a (u)":                      scheduler.DeletePod{Name: "a", UID: "u"},
		"set condition Ready=True of pod a (u)": scheduler.SetPodCondition{Name: "a", UID: "u", Condition: corev1.PodCondition{Type: "Ready", Status: "True"}},
		"create VMI a":                          scheduler.CreateInstance{Instance: v},
		"delete VMI a":                          scheduler.DeleteInstance{Instance: v},
		"adopt VMI a":                           scheduler.AdoptInstance{Instance: v},
		"release VMI a":                         scheduler.ReleaseInstance{Instance: v},
		"change VMI a: annotation k=v link n=down": scheduler.ChangeInstance{Instance: v, Annotations: map[string]string{"k": "v"}, Links: map[string]vmi.InterfaceState{"n": "down"}},
		"create VM a":                                      scheduler.CreateVM{VM: vm},
		"delete VM a":                                      scheduler.DeleteVM{VM: vm},
		"change VM a":                                      scheduler.ChangeVM{From: vm, To: vm},
		"restart VM a":                                     scheduler.RestartVM{VM: vm, Instance: v},
		"create DataVolume a":                              scheduler.CreateDataVolume{DataVolume: d},
		"create migration m of VMI a":                      scheduler.CreateMigration{Migration: m},
		"evict pod a (u)":                                  scheduler.EvictPod{Name: "a", UID: "u"},
		"annotate pod a (u): k=v":                          scheduler.AnnotatePod{Name: "a", UID: "u", Key: "k", Value: "v"},
		"change labels: k=v without l without a":           scheduler.ChangeLabels{Labels: map[string]string{"k": "v"}, Removed: []string{"l"}, Annotations: []string{"a"}},
		"create ControllerRevision a":                      scheduler.CreateRevision{Revision: &appsv1.ControllerRevision{ObjectMeta: named}},
		"delete ControllerRevision a (u)":                  scheduler.DeleteRevision{Name: "a", UID: "u"},
		"set run strategy from Always to Halted":           scheduler.SetRunStrategy{From: "Always", To: "Halted"},
		`write status {"phase":"Running","nodeName":"n1"}`: scheduler.WriteStatus[*vmi.VirtualMachineInstance]{Object: v},
		"emit event Made: it is there":                     scheduler.Emit{Finding: vmi.Finding{Reason: "Made", Message: "it is there"}},
		"emit warning Gone: it is not":                     scheduler.Emit{Warning: true, Finding: vmi.Finding{Reason: "Gone", Message: "it is not"}},
	} {
		require.Equal(t, want, scheduler.Plan{Actions: []scheduler.Action{a}}.String())
	}
	require.Equal(t, "nothing to do", scheduler.Plan{}.String())
	require.Equal(t, "remove label k\ndecide again after 1s", scheduler.Plan{Actions: []scheduler.Action{scheduler.RemoveLabel{Key: "k"}}, Recheck: time.Second}.String())
}
