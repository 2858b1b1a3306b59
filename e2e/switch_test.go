package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
)

// moments are those of the switch of a migration in their order, by the lines of logs that say
// them, with what passes until each and who does that. The nodes have one clock.
var moments = []struct{ in, says, until string }{
	{"", "", ""},
	{"launcher of the source", `"msg":"the guest stands still"`, "QEMU pauses the guest: since the last question by ICMP that it answered there"},
	{"launcher of the source", `"msg":"everything is sent"`, "libvirt ends the copies of disks, QEMU sends the rest"},
	{"handler of the source", `"msg":"migration","step":"finish"`, "Podvisor notes that, and the handler has the answer"},
	{"launcher of the target", `"msg":"the guest is to run here"`, "Podvisor asks the target"},
	{"launcher of the target", `"msg":"the guest runs here"`, "libvirt and QEMU let the guest run"},
	{"handler of the target", `"msg":"called the launcher","call":"migration-finish"`, "Podvisor answers, and announces the guest"},
	{"", "", "the first question by ICMP is asked that it answers here"},
}

// switchover is how long each part of a switch took, by its moment. 0: that is not known.
type switchover struct {
	parts []time.Duration
	// besides is the longest time without an answer that is not the switch, which began so
	// long after the guest stood still.
	besides, began time.Duration
}

// whole is the time between the two questions.
func (s switchover) whole() (sum time.Duration) {
	for _, d := range s.parts {
		sum += d
	}
	return sum
}

// logsOf are the lines about a migration that has just succeeded, by what writes them. The pod of
// the source, and its log, may be gone half a minute later.
func (s space) logsOf(m *vmi.VirtualMachineInstanceMigration) map[string][]string {
	s.t.Helper()
	state := m.Status.MigrationState
	return map[string][]string{
		"launcher of the source": s.linesOf(s.name, state.SourcePod, vmi.ComputeContainer, m),
		"launcher of the target": s.linesOf(s.name, state.TargetPod, vmi.ComputeContainer, m),
		"handler of the source":  s.linesOf(install.Namespace, s.handlerOf(state.SourceNode), "", m),
		"handler of the target":  s.linesOf(install.Namespace, s.handlerOf(state.TargetNode), "", m),
	}
}

// switchover reads the moments of a migration in its logs. The pings are those of the guest.
func (s space) switchover(logs map[string][]string, pings *answers) switchover {
	s.t.Helper()
	stood := s.moment(logs[moments[1].in], moments[1].says)
	first, last := pings.around(stood)
	asked := []time.Time{first, last}
	var all switchover
	all.besides, all.began = pings.besides(stood)
	var before time.Time
	for _, moment := range moments {
		var at time.Time
		if moment.in == "" {
			at, asked = asked[0], asked[1:]
		} else {
			at = s.moment(logs[moment.in], moment.says)
		}
		var took time.Duration
		if !before.IsZero() && !at.IsZero() {
			took = at.Sub(before)
		}
		all.parts, before = append(all.parts, took), at
	}
	return all
}

// handlerOf is the pod of virt-handler on the node.
func (s space) handlerOf(node string) string {
	s.t.Helper()
	l, err := world.kube.CoreV1().Pods(install.Namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io=virt-handler", FieldSelector: "spec.nodeName=" + node})
	require.NoError(s.t, err)
	require.Len(s.t, l.Items, 1)
	return l.Items[0].Name
}

// linesOf are the lines of the log that name the migration.
func (s space) linesOf(namespace, pod, container string, m *vmi.VirtualMachineInstanceMigration) (all []string) {
	s.t.Helper()
	log, err := world.kube.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, SinceTime: &m.CreationTimestamp}).Stream(s.t.Context())
	require.NoError(s.t, err)
	defer log.Close()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), string(m.UID)) {
			all = append(all, lines.Text())
		}
	}
	require.NoError(s.t, lines.Err())
	return all
}

// moment is the time of the line that says it. The attributes of a line between its message and
// those that it says are left out.
func (s space) moment(lines []string, says string) time.Time {
	s.t.Helper()
	for _, line := range lines {
		missing := slices.ContainsFunc(strings.SplitAfter(says, `",`), func(part string) bool { return !strings.Contains(line, strings.TrimSuffix(part, ",")) })
		if missing {
			continue
		}
		var of struct{ Time time.Time }
		require.NoError(s.t, json.Unmarshal([]byte(line), &of), line)
		return of.Time
	}
	s.t.Fatalf("no line says %s:\n%s", says, strings.Join(lines, "\n"))
	return time.Time{}
}

// table are the medians of the parts of switches, and the longest.
func table(all []switchover) string {
	var b strings.Builder
	row := func(what string, of func(switchover) time.Duration) {
		var part []time.Duration
		for _, one := range all {
			if d := of(one); d != 0 {
				part = append(part, d)
			}
		}
		if len(part) == 0 {
			return
		}
		slices.Sort(part)
		fmt.Fprintf(&b, "%8s  up to %8s  %s\n", part[len(part)/2].Round(100*time.Microsecond), part[len(part)-1].Round(time.Millisecond), what)
	}
	for n, moment := range moments {
		row(moment.until, func(s switchover) time.Duration { return s.parts[n] })
	}
	row("between these two questions, of which the second may be asked before the guest runs on", switchover.whole)
	row("the longest time without an answer by ICMP besides it", func(s switchover) time.Duration { return s.besides })
	row("when that began, after the guest stood still", func(s switchover) time.Duration { return s.began })
	return b.String()
}
