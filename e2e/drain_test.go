package e2e

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// drained is how many VMIs run on the node that is drained.
var drained = flag.Int("drained", 3, "how many VMIs run on the node that is drained")

// drain is what was seen while a node was drained.
type drain struct {
	// most is how many migrations were under way at once at most.
	most int
	// marked are the pods that had the annotation of an eviction that is under way.
	marked map[string]bool
}

// watchDrain looks at the migrations and the pods of the namespace until the function that it
// returns is called.
func (s space) watchDrain() (end func() drain) {
	seen := drain{marked: map[string]bool{}}
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			l, err := world.vmis.VirtualMachineInstanceMigrations(s.name).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			l.Items = slices.DeleteFunc(l.Items, func(m vmi.VirtualMachineInstanceMigration) bool {
				p := m.Status.Phase
				return p == vmi.MigrationPhaseUnset || p == vmi.MigrationPhasePending || p.Final()
			})
			seen.most = max(seen.most, len(l.Items))
			pods, err := world.kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{LabelSelector: "kubevirt.io=virt-launcher"})
			if err != nil {
				continue
			}
			for _, p := range pods.Items {
				if p.Annotations[vmi.EvictionInProgressAnnotation] == "true" {
					seen.marked[p.Name] = true
				}
			}
		}
	})
	return func() drain { cancel(); wg.Wait(); return seen }
}

// No other test runs meanwhile: its pods would be evicted too, or find no node.
func TestADrainMovesEveryVMIAndEnds(t *testing.T) {
	s := newSpace(t)
	nodes, err := world.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: vmi.SchedulableLabel + "=true"})
	require.NoError(t, err)
	require.Len(t, nodes.Items, 2)
	from, to := nodes.Items[0].Name, nodes.Items[1].Name

	uncordon := s.cordon(to)
	seen := s.newVisitor()
	before, boot, sources := map[string]*vmi.VirtualMachineInstance{}, map[string]string{}, map[string]bool{}
	for n := range *drained {
		name := fmt.Sprintf("drained-%d", n)
		s.service(name)
		s.create(guest(name, cloudConfig("hostname: "+name), strategy(vmi.EvictionLiveMigrate), vmitest.WithGracePeriod(1)))
		before[name] = nil
	}
	for name := range before {
		v := s.awaitSteady(name)
		require.Equal(t, from, v.Status.NodeName)
		before[name], boot[name], sources[s.podOf(v).Name] = v, seen.awaitPage("http://"+name+"/boot-id"), true
	}
	uncordon()

	end := s.watchDrain()
	t.Cleanup(func() {
		_, err := world.kubectl.Run(context.Background(), "uncordon", from)
		require.NoError(t, err)
	})
	began := time.Now()
	s.kubectl("drain", from, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=kubevirt.io=virt-launcher", "--timeout=300s")
	took, was := time.Since(began), end()
	t.Logf("the drain of %d VMIs took %s, with up to %d migrations at once", *drained, took.Round(100*time.Millisecond), was.most)

	require.LessOrEqual(t, was.most, 2, "two may leave a node at once")
	require.Equal(t, sources, was.marked, "the pods that were to be left have the annotation, and no targets")
	for name, old := range before {
		v := s.get(name)
		require.Equal(t, old.UID, v.UID)
		require.Equal(t, to, v.Status.NodeName)
		require.Equal(t, vmi.PhaseRunning, v.Status.Phase)
		require.Empty(t, v.Status.EvacuationNodeName)
		require.Nil(t, v.Status.Condition(vmi.ConditionEvictionRequested))
		require.Equal(t, boot[name], seen.awaitPage("http://"+name+"/boot-id"), "the guest did not boot anew")
	}
	l, err := world.vmis.VirtualMachineInstanceMigrations(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, l.Items, *drained, "one for each")
	for _, m := range l.Items {
		require.True(t, strings.HasPrefix(m.Name, vmi.EvacuationNamePrefix), m.Name)
		require.Equal(t, from, m.Annotations[vmi.EvacuationMigrationAnnotation])
		s.awaitMigration(&m, vmi.MigrationPhaseSucceeded)
	}
	left, err := world.kube.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io=virt-launcher", FieldSelector: "spec.nodeName=" + from})
	require.NoError(t, err)
	for _, p := range left.Items {
		require.NotEqual(t, corev1.PodRunning, p.Status.Phase, p.Name)
	}
}
