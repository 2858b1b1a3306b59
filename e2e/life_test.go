package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAVMIBootsServesAndPowersOff(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.service("web")
	seen := s.newVisitor()
	s.create(guest("web", cloudConfig(
		"hostname: web",
		"write_files:",
		"- path: /www/written",
		"  content: from cloud-init",
		"runcmd:",
		// On a busy host the guest boots without waiting for its lease to the end.
		"- for i in $(seq 60); do nslookup kubernetes.default.svc.cluster.local > /www/.names 2>&1 && break; sleep 1; done; mv /www/.names /www/names",
	)))
	v := s.awaitPhase("web", vmi.PhaseRunning)
	require.Equal(t, corev1.ConditionTrue, v.Status.Condition(vmi.ConditionReady).Status)
	require.Len(t, v.Status.Interfaces, 1)
	require.Equal(t, s.pod(v).Status.PodIP, v.Status.Interfaces[0].IP)

	require.Contains(t, seen.awaitPage("http://web"), "web", "the page holds the guest's host name")
	require.Equal(t, "from cloud-init", strings.TrimSpace(seen.awaitPage("http://web/written")))
	require.Contains(t, seen.awaitPage("http://web/names"), "10.96.0.1", "the guest resolves names of the cluster")
	for _, e := range s.events(v) {
		require.NotEqual(t, corev1.EventTypeWarning, e.Type, "a healthy start warns of nothing: %s: %s", e.Reason, e.Message)
	}
	onNode := s.traces(v)
	require.NotEmpty(t, onNode.processes())
	s.awaitSeries(v, `kubevirt_vmi_vcpu_seconds_total{id="0",`, 1)

	console := s.keepConsole(v)
	s.delete("web")
	s.awaitGone(v)
	require.Contains(t, console(), "powering off", "the guest powered off in order")
	onNode.awaitNone()
	s.awaitSeries(v, "kubevirt_vmi_", 0)
}

// awaitSeries waits until the handler of the VMI's node serves so many series of it that
// begin so, each with a value that is not zero.
func (s space) awaitSeries(v *vmi.VirtualMachineInstance, begin string, want int) {
	s.t.Helper()
	pods := world.kube.CoreV1().Pods(install.Namespace)
	labels := fmt.Sprintf(`,name=%q,namespace=%q,node=%q,`, v.Name, v.Namespace, v.Status.NodeName)
	eventually(s.t, soon, func() error {
		l, err := pods.List(s.t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io=virt-handler", FieldSelector: "spec.nodeName=" + v.Status.NodeName})
		if err != nil || len(l.Items) != 1 {
			return fmt.Errorf("%d handlers: %w", len(l.Items), err)
		}
		text, err := s.metrics(l.Items[0].Name)
		if err != nil {
			return err
		}
		if !strings.Contains(text, "go_goroutines") {
			return fmt.Errorf("no metrics: %s", text)
		}
		found := 0
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, begin) && strings.Contains(line, labels) && !strings.HasSuffix(line, " 0\n") {
				found++
			}
		}
		if found != want {
			return fmt.Errorf("%d series %s… of VMI %s, not %d", found, begin, v.Name, want)
		}
		return nil
	})
}

func TestEveryLegalNameRuns(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	var all []*vmi.VirtualMachineInstance
	for _, name := range []string{
		strings.Repeat("long-name-", 6) + "end",  // 63, the longest label
		strings.Repeat("long-name-", 6) + "over", // 64
		"web.example.com",
		strings.Repeat("longest-", 25) + "name." + strings.Repeat("longest-", 5) + "endmost1", // 253, the longest
	} {
		v := guest(name, cloudConfig("hostname: long"), vmitest.WithGracePeriod(1))
		v.Labels = nil
		all = append(all, s.create(v))
	}
	require.Len(t, all[3].Name, 253)
	for _, v := range all {
		s.awaitPhase(v.Name, vmi.PhaseRunning)
		s.awaitEvent(v, "Started")
	}
	s.awaitConsole(all[3], ready)
	for _, v := range all {
		s.delete(v.Name)
	}
	for _, v := range all {
		s.awaitGone(v)
	}
}

func TestAGuestThatIgnoresThePowerButtonIsSwitchedOffAfterItsGracePeriod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := s.create(guest("deaf", cloudConfig(
		"write_files:",
		"- path: /etc/podvisor-guest/ignore-power-button",
		"  content: please",
	), vmitest.WithGracePeriod(3)))
	s.awaitPhase("deaf", vmi.PhaseRunning)
	require.Subset(t, s.pod(v).Spec.Containers[0].Args, []string{"--grace-period", "3s"}, "the grace period is that of the spec")
	s.awaitConsole(v, ready)
	onNode := s.traces(v)
	console := s.keepConsole(v)
	s.delete("deaf")
	s.awaitGone(v)
	require.NotContains(t, console(), "powering off")
	onNode.awaitNone()
}

func TestAGuestThatPowersItselfOffSucceeds(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("brief", cloudConfig("runcmd:", "- poweroff")))
	v := s.awaitPhase("brief", vmi.PhaseSucceeded)
	eventually(t, soon, func() error { return podIn(s.pod(v), corev1.PodSucceeded) })
	require.Contains(t, s.console(v), "powering off", "the log is there after the end")
	s.delete("brief")
	s.awaitGone(v)
}

func TestAVMIWhoseQEMUIsKilledFails(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("doomed", cloudConfig("hostname: doomed")))
	v := s.awaitPhase("doomed", vmi.PhaseRunning)
	s.traces(v).kill("qemu-system")
	v = s.awaitPhase("doomed", vmi.PhaseFailed)
	require.NotEmpty(t, v.Status.Reason)
	eventually(t, soon, func() error { return podIn(s.pod(v), corev1.PodFailed) })
	s.delete("doomed")
	s.awaitGone(v)
}

func TestAVMIIsDeletedBeforeItRuns(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := s.create(guest("regretted", cloudConfig("hostname: regretted")))
	s.delete("regretted")
	s.awaitGone(v)
}

func TestABridgedGuestHasTheAddressOfItsPod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	seen := s.newVisitor()
	v := guest("bridged", cloudConfig("hostname: bridged"))
	v.Spec.Domain.Devices.Interfaces, v.Spec.Networks = nil, nil
	vmitest.WithBridge("default")(v)
	s.create(v)
	v = s.awaitPhase("bridged", vmi.PhaseRunning)
	ip := s.pod(v).Status.PodIP
	require.Equal(t, ip, v.Status.Interfaces[0].IP)
	require.Contains(t, s.awaitConsole(v, ready), ip)
	require.Contains(t, seen.awaitPage("http://"+ip), "bridged")
}
