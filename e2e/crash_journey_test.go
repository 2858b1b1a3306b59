package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/fault"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
)

// endsIts reports whether the fault ends the QEMU of this side.
func (s *scene) endsIts(side string) bool {
	where, program, _ := strings.Cut(s.Component, "-")
	return where == side && slices.Contains([]string{"launcher", "QEMU", "pod"}, program)
}

// isSent reports whether everything of the guest was at the target when the fault came. A pod that
// is removed has some time yet.
func (j *journey) isSent(k fault.Kind) bool {
	at := j.source.said(sentLine)
	return !at.IsZero() && (at.Before(j.at) || k == fault.Removed)
}

// ran reports whether the guest ran at the target.
func (j *journey) ran() bool {
	return j.target.last() != 0 || !j.target.said(`"msg":"the guest runs here"`).IsZero()
}

// mayFail reports whether the guest may end by the fault: its own process does. That is the one of the
// source unless the guest ran at the target, and that of the target if everything was sent.
func (s *scene) mayFail(j journey) bool {
	return s.endsIts("source") && !j.ran() || s.endsIts("target") && j.isSent(s.Kind)
}

// awaitJourney waits until the migration is over, and the guest counts or has ended.
func (s *scene) awaitJourney() {
	s.t.Helper()
	ctx := s.t.Context()
	eventually(s.t, long, func() error {
		l, err := world.vmis.VirtualMachineInstanceMigrations(s.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(l.Items) != 1 || !l.Items[0].Status.Phase.Final() {
			return fmt.Errorf("the migration has not ended: %+v", l.Items)
		}
		if err := s.met(); err != nil {
			return err
		}
		v, err := world.vmis.VirtualMachineInstances(s.name).Get(ctx, "move", metav1.GetOptions{})
		if err != nil || v.Status.Phase.Final() {
			return err
		}
		before := s.journey()
		d := before.where(v)
		from := d.last()
		time.Sleep(time.Second)
		after := s.journey()
		if to := after.where(v).last(); to <= from {
			return fmt.Errorf("the guest on node %s counts from %d to %d in a second: %s %+v", v.Status.NodeName, from, to, v.Status.Phase, v.Status.Conditions)
		}
		now, err := world.vmis.VirtualMachineInstances(s.name).Get(ctx, "move", metav1.GetOptions{})
		if err == nil && (now.Status.Phase != v.Status.Phase || now.Status.NodeName != v.Status.NodeName || now.Status.Condition(vmi.ConditionPaused) != nil) {
			err = fmt.Errorf("the VMI is not settled: %s on %s: %+v", now.Status.Phase, now.Status.NodeName, now.Status.Conditions)
		}
		return err
	})
}

// where is the side that the VMI is on.
func (j *journey) where(v *vmi.VirtualMachineInstance) *moveSide {
	if v.Status.NodeName == j.target.node {
		return &j.target
	}
	return &j.source
}

// met says that the fault has not come although it may come, or that a pod which it removes runs.
func (s *scene) met() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lives {
		j := l.journey
		over := j.source.over() || j.target.over()
		if s.Component == "" && !l.seen["source pod ended"] || s.Component != "" && !s.hit && !over {
			return errors.New("the pod of a side has not ended yet")
		}
		d, _ := j.of(s.Component)
		if !s.hit || s.Kind != fault.Removed {
			continue
		}
		if n := d.processes(); n > 0 {
			return fmt.Errorf("pod %s was removed, and %d processes of it run", d.name, n)
		}
	}
	return nil
}

// processes is how many processes of the pod there are.
func (d *moveSide) processes() (n int) {
	for _, p := range watched().pods() {
		if d.uid != "" && p.pod == d.uid {
			n++
		}
	}
	return n
}

// judgeJourney requires what there must be after a migration: the states in the API are true, and
// nothing of it is left on the node that the guest is not on.
func (s *scene) judgeJourney() {
	s.t.Helper()
	eventually(s.t, 2*time.Minute, func() error {
		v, err := world.vmis.VirtualMachineInstances(s.name).Get(s.t.Context(), "move", metav1.GetOptions{})
		if err != nil {
			return err
		}
		l, err := world.vmis.VirtualMachineInstanceMigrations(s.name).List(s.t.Context(), metav1.ListOptions{})
		if err != nil || len(l.Items) != 1 {
			return fmt.Errorf("%d migrations: %w", len(l.Items), err)
		}
		j := s.journey()
		return errors.Join(truth(v, &l.Items[0], j), left(v, j))
	})
	v, j := s.get("move"), s.journey()
	switch v.Status.Phase {
	case vmi.PhaseRunning:
		if s.Component == "" {
			require.Equal(s.t, j.target.node, v.Status.NodeName, "without a fault the guest moves")
		}
	case vmi.PhaseFailed:
		require.True(s.t, s.mayFail(j), "the VMI failed with %s, and its guest was not that of the process", v.Status.Reason)
	default:
		require.Fail(s.t, "the VMI is "+string(v.Status.Phase))
	}
}

// truth is what the API says of the migration and is not so.
func truth(v *vmi.VirtualMachineInstance, m *vmi.VirtualMachineInstanceMigration, j journey) error {
	says := v.Status.MigrationState
	if says != nil && says.MigrationUID != m.UID {
		return fmt.Errorf("the VMI says another migration: %+v", says)
	}
	var errs []error
	wrong := func(is bool, text string) {
		if is {
			errs = append(errs, fmt.Errorf("%s: phase %s of the migration, VMI %s on %s: %+v", text, m.Status.Phase, v.Status.Phase, v.Status.NodeName, says))
		}
	}
	if says != nil {
		wrong(!says.Completed, "the migration is not completed")
		wrong(says.StartTimestamp == nil || says.EndTimestamp == nil, "there is no start or no end")
		wrong(says.Failed != (says.FailureReason != ""), "it failed for no reason, or has a reason and did not fail")
		wrong(says.Failed == (v.Status.NodeName == says.TargetNode), "it did not fail, and the VMI is not at the target, or it failed and is there")
	}
	moved := says != nil && !says.Failed
	wrong(moved != (m.Status.Phase == vmi.MigrationPhaseSucceeded), "the migration does not say what the VMI says")
	wrong(moved && v.Status.Phase == vmi.PhaseRunning && j.target.last() == 0, "the guest has not counted at the target")
	wrong(v.Labels[vmi.MigrationTargetNodeLabel] != "", "the label of the target is left")
	wrong(v.Status.ActivePods[j.where(v).uid] != v.Status.NodeName, fmt.Sprintf("the active pods are %v", v.Status.ActivePods))
	return errors.Join(errs...)
}

// left is what is left of the side that the VMI is not on, and of both if it has ended.
func left(v *vmi.VirtualMachineInstance, j journey) error {
	for _, d := range []*moveSide{&j.source, &j.target} {
		if v.Status.Phase == vmi.PhaseRunning && d.uid == j.where(v).uid {
			continue
		}
		if n := d.processes(); n > 0 {
			return fmt.Errorf("%d processes of pod %s are left on node %s", n, d.name, d.node)
		}
	}
	return nil
}

// journeyOracle says what of all that was seen of a VMI that moves is wrong. A count that two QEMUs
// print, or the source after the target, says that both ran.
func (s *scene) journeyOracle() {
	s.t.Helper()
	_, _, err := watched().said(s.name + "_")
	errs := []error{err}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lives {
		if err := fault.Phases(l.phases); err != nil {
			errs = append(errs, err)
		}
		if len(l.pods) > 2 || len(l.qemus) > 2 {
			errs = append(errs, fmt.Errorf("there were %d pods and %d QEMUs", len(l.pods), len(l.qemus)))
		}
		errs = append(errs, l.journey.counted())
	}
	if len(s.lives) != 1 {
		errs = append(errs, fmt.Errorf("%d VMIs were made", len(s.lives)))
	}
	require.NoError(s.t, errors.Join(errs...))
}

// counted says that the guest has not counted on, or on its disk not what it wrote.
func (j *journey) counted() error {
	starts, all := j.source.counts()
	also, there := j.target.counts()
	for _, start := range also {
		if !slices.Contains(starts, start) {
			starts = append(starts, start)
		}
	}
	all = append(all, there...)
	var errs []error
	if len(starts) != 1 {
		errs = append(errs, fmt.Errorf("the guest was started %d times: %q", len(starts), starts))
	}
	for n := 1; n < len(all); n++ {
		if all[n] <= all[n-1] {
			errs = append(errs, fmt.Errorf("the guest has counted %d after %d, of %d numbers of the source and %d of the target", all[n], all[n-1], len(all)-len(there), len(there)))
		}
	}
	for _, d := range []*moveSide{&j.source, &j.target} {
		if strings.Contains(string(d.text), "<!>") {
			errs = append(errs, fmt.Errorf("the guest in pod %s has not read what it wrote", d.name))
		}
	}
	return errors.Join(errs...)
}

// history is what was seen, for a failure.
func (j *journey) history() string {
	var out strings.Builder
	if j.migration != nil {
		fmt.Fprintf(&out, "migration: %+v\n", j.migration.Status)
	}
	fmt.Fprintf(&out, "the fault came at %s\n", j.at.UTC().Format(time.RFC3339Nano))
	for name, d := range map[string]*moveSide{"source": &j.source, "target": &j.target} {
		starts, numbers := d.counts()
		fmt.Fprintf(&out, "%s %s on %s is %s, gone: %t; %d numbers of %q up to %d\n", name, d.name, d.node, d.phase, d.gone, len(numbers), starts, d.last())
		for line := range strings.Lines(string(d.text)) {
			if !countPattern.MatchString(line) {
				out.WriteString("  " + line)
			}
		}
	}
	return out.String()
}

// renew replaces the pods of Podvisor whose containers were killed, since the kubelet waits longer
// each time before it starts one again, and waits until all are ready.
func (s *scene) renew() {
	s.t.Helper()
	ctx := context.Background()
	eventually(s.t, long, func() error {
		l, err := world.kube.CoreV1().Pods(install.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubevirt.io in (virt-handler, virt-controller)"})
		if err != nil {
			return err
		}
		for _, p := range l.Items {
			ready := false
			for _, c := range p.Status.Conditions {
				ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}
			old := slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
			if old && p.DeletionTimestamp == nil {
				if err := world.kube.CoreV1().Pods(install.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					return err
				}
			}
			if old || !ready {
				return fmt.Errorf("pod %s is not new or not ready", p.Name)
			}
		}
		if len(l.Items) != 2+len(nodes) { // virt-controller has two
			return fmt.Errorf("there are %d pods of Podvisor", len(l.Items))
		}
		return nil
	})
	s.awaitNode()
}
