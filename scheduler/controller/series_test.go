package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/retry"

	"github.com/podvisor/podvisor/internal/scheduler/metrics"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestSeriesAreTheSameByWhatIsKept(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	for seed := range uint64(worlds) {
		w := newFilled(seed)
		o := w.instances()
		annotate(w, o.VMI, observedAnnotations)
		of := func(v *vmi.VirtualMachineInstance, p *corev1.Pod) metrics.Instance {
			return metrics.Instance{VMI: v, Pod: p}
		}
		require.Equal(t, of(o.VMI, o.Pods.Active).Series(), of(reduced(o.VMI, k.instance), reduced(o.Pods.Active, k.pod)).Series(), "seed %d", seed)

		for annotation := range namedBy {
			require.Equal(t, o.VMI.Annotations[annotation], reduced(o.VMI, k.instance).Annotations[annotation])
		}
		now := o.VMI.DeepCopy()
		now.Status.Phase = one(w, vmi.PhaseRunning, vmi.PhaseFailed)
		require.Equal(t, metrics.Phases(o.VMI, now), metrics.Phases(reduced(o.VMI, k.instance), reduced(now, k.instance)), "seed %d", seed)

		own := w.vms().VM
		claims := func(keep func(*corev1.PersistentVolumeClaim)) func(string) *corev1.PersistentVolumeClaim {
			return func(name string) *corev1.PersistentVolumeClaim {
				return reduced(newFilled(seed).claims([]string{name})[name], keep)
			}
		}
		require.Equal(t, metrics.VM{VM: own, Claim: claims(func(*corev1.PersistentVolumeClaim) {})}.Series(),
			metrics.VM{VM: wholeVM(reduced(own, keepVM)), Claim: claims(keepClaim)}.Series(), "seed %d", seed)
	}
}

func annotate(w *filled, o metav1.Object, keys []string) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	for _, key := range keys {
		all[key] = one(w, "", "a", "b")
	}
	o.SetAnnotations(all)
}

// gathered are the series of a registry of which the name begins with kubevirt_vm, by their
// name, with those labels that have values.
func gathered(t *testing.T, reg prometheus.Gatherer) map[string][]string {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	out := map[string][]string{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "kubevirt_vm") {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out[f.GetName()] = append(out[f.GetName()], fmt.Sprintf("%s %v", strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount())))
		}
	}
	return out
}

func TestTheLeaderServesTheSeriesOfWhatItHasInItsCaches(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	v.Name, v.UID = "web", "u1"
	v.Annotations = map[string]string{"kubevirt.io/cluster-instancetype-name": "mine", metrics.OSAnnotation: "fedora"}
	v.Status.Phase, v.Status.NodeName = vmi.PhaseRunning, "n1"
	v.Status.MigrationState = &vmi.MigrationState{MigrationUID: "m1", StartTimestamp: new(metav1.Unix(10, 0))}
	own := vmitest.NewVM(vmi.RunManual)
	own.Name, own.Namespace = "web", v.Namespace
	own.Spec.Template.Spec.Domain.Memory = nil // the instance type has it
	own.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "mine"}
	kind := &instancetype.VirtualMachineClusterInstancetype{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	kind.Spec.CPU.Guest = 7
	move := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Name: "move", Namespace: v.Namespace, UID: types.UID("m1")}}
	move.Spec.VMIName, move.Status.Phase = "web", vmi.MigrationPhaseFailed
	cfg := fake.New(v, own, kind, move).Config()
	var requests atomic.Int64
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counted(func(r *http.Request) (*http.Response, error) {
			requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	api, err := client.New(cfg)
	require.NoError(t, err)
	kube := kubefake.NewClientset()
	reg := prometheus.NewRegistry()
	c, err := New(Config{Client: api, Kube: kube, Launcher: rendering, Metrics: reg})
	require.NoError(t, err)
	require.Empty(t, gathered(t, reg), "it does not lead")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	var got map[string][]string
	require.Eventually(t, func() bool {
		got = gathered(t, reg)
		return len(got) > 0 // then all caches are filled
	}, time.Minute, 10*time.Millisecond)
	require.Contains(t, got["kubevirt_vmi_info"][0], "instance_type=<other>,name=web,namespace=default,node=n1,os=fedora,outdated=false,")
	require.Contains(t, got["kubevirt_vm_info"][0], "instance_type=<other>,name=web,")
	require.Contains(t, got["kubevirt_vm_resource_requests"], "name=web,namespace=default,resource=cpu,source=guest_effective,unit=cores 7", "by its instance type")
	require.Equal(t, []string{"migration_name=move,name=web,namespace=default,node=n1 10"}, got["kubevirt_vmi_migration_start_time_seconds"])
	require.Equal(t, []string{"namespace=default,vmi=web,vmim=move 1"}, got["kubevirt_vmi_migration_failed"])

	// The controller itself may send some at the same time.
	const scrapes = 200
	sent := func() int64 { return requests.Load() + int64(len(kube.Actions())) }
	before := sent()
	require.NotZero(t, before)
	for range scrapes {
		gathered(t, reg)
	}
	require.Less(t, sent()-before, int64(scrapes), "a scrape sends no request")

	// The controller may write the VMI at the same time.
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		failed, err := api.VirtualMachineInstances("default").Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		failed.Status.Phase = vmi.PhaseFailed
		failed.Status.PhaseTransitionTimestamps = []vmi.PhaseTransitionTimestamp{{Phase: vmi.PhaseFailed, PhaseTransitionTimestamp: metav1.Now()}}
		_, err = api.VirtualMachineInstances("default").UpdateStatus(ctx, failed, metav1.UpdateOptions{})
		return err
	}))
	require.Eventually(t, func() bool {
		all := gathered(t, reg)["kubevirt_vmi_phase_transition_time_from_creation_seconds"]
		return len(all) == 1 && all[0] == "phase=Failed 1"
	}, time.Minute, 10*time.Millisecond)

	cancel()
	require.NoError(t, <-ended)
	require.Empty(t, gathered(t, reg), "it leads no more")
}
