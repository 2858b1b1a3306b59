package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// commands are pages of the guest that run a command each.
func commands(all map[string]string) string {
	lines := []string{"write_files:"}
	for name, command := range all {
		lines = append(lines, "- path: /www/cgi-bin/"+name, "  permissions: '0755'",
			fmt.Sprintf("  content: %q", "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n"+command+"\n"))
	}
	return cloudConfig(lines...)
}

// quick makes a probe that is asked every two seconds.
func quick(h vmi.ProbeHandler) *vmi.Probe {
	return &vmi.Probe{ProbeHandler: h, PeriodSeconds: 2, TimeoutSeconds: 5, FailureThreshold: 2}
}

// awaitReadiness waits until the VMI and its pod are ready, or both are not.
func (s space) awaitReadiness(name string, want corev1.ConditionStatus) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		v := s.get(name)
		c := v.Status.Condition(vmi.ConditionReady)
		if v.Status.Phase != vmi.PhaseRunning || c == nil || c.Status != want {
			return fmt.Errorf("%s is %s with the conditions %+v", name, v.Status.Phase, v.Status.Conditions)
		}
		for _, p := range s.pod(v).Status.Conditions {
			if p.Type == corev1.PodReady && p.Status != want {
				return fmt.Errorf("the pod of %s: %+v", name, p)
			}
		}
		return nil
	})
}

func TestAReadinessProbeFollowsTheAnswersOfItsGuest(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	seen := s.newVisitor()
	pages := commands(map[string]string{
		"up": "touch /www/ready /run/ready", "down": "rm -f /www/ready /run/ready",
		"serve": "httpd -f -p 8081 -h /www >/dev/null 2>&1 &\necho $! >/run/served", "end": "kill $(cat /run/served)",
	})
	probed := func(name string, h vmi.ProbeHandler, option vmitest.Option) {
		v := guest(name, pages)
		v.Spec.Domain.Devices.Interfaces, v.Spec.Networks = nil, nil
		option(v)
		v.Spec.ReadinessProbe = quick(h)
		s.create(v)
	}
	probed("http", vmi.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("web")}}, vmitest.WithMasquerade("default", vmi.Port{Name: "web", Port: 80}))
	probed("tcp", vmi.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8081)}}, vmitest.WithBridge("default"))
	probed("exec", vmi.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", `for f in $(ls /run/ready); do exit 0; done; exit 7`}}}, vmitest.WithMasquerade("default"))
	for _, tt := range []struct{ name, up, down string }{{"http", "up", "down"}, {"tcp", "serve", "end"}, {"exec", "up", "down"}} {
		v := s.awaitPhase(tt.name, vmi.PhaseRunning)
		address := "http://" + s.pod(v).Status.PodIP
		seen.awaitPage(address)
		s.awaitReadiness(tt.name, corev1.ConditionFalse)
		require.Equal(t, "ContainersNotReady", s.get(tt.name).Status.Condition(vmi.ConditionReady).Reason)
		seen.awaitPage(address + "/cgi-bin/" + tt.up)
		s.awaitReadiness(tt.name, corev1.ConditionTrue)
		seen.awaitPage(address + "/cgi-bin/" + tt.down)
		s.awaitReadiness(tt.name, corev1.ConditionFalse)
	}
}

func TestALivenessProbeEndsAVMIWhoseAgentIsGone(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	seen := s.newVisitor()
	v := guest("alive", commands(map[string]string{"stop": "killall qemu-ga"}))
	v.Spec.LivenessProbe = quick(vmi.ProbeHandler{GuestAgentPing: &vmi.GuestAgentPing{}})
	v.Spec.LivenessProbe.InitialDelaySeconds, v.Spec.LivenessProbe.FailureThreshold = 120, 60 // a guest may take minutes to boot
	v.Spec.ReadinessProbe = quick(vmi.ProbeHandler{GuestAgentPing: &vmi.GuestAgentPing{}})
	v.Spec.ReadinessProbe.PeriodSeconds = 15 // the kubelet drops the events of a pod after 25
	s.create(v)
	v = s.awaitPhase("alive", vmi.PhaseRunning)
	s.awaitReadiness("alive", corev1.ConditionTrue)
	seen.awaitPage("http://" + s.pod(v).Status.PodIP + "/cgi-bin/stop")
	v = s.awaitPhase("alive", vmi.PhaseSucceeded)
	eventually(t, soon, func() error {
		if v = s.get("alive"); v.Status.Reason != "LivenessProbeFailed" {
			return fmt.Errorf("the VMI has the reason %s", v.Status.Reason)
		}
		return nil
	})
	require.Equal(t, "the liveness probe of the guest failed; the guest powered off", v.Status.Condition(vmi.ConditionReady).Message)
	eventually(t, soon, func() error {
		if said := s.kubectl("get", "events", "-o", "jsonpath={.items[*].message}"); !strings.Contains(said, "Liveness probe failed") {
			return fmt.Errorf("no event says that the liveness probe failed: %s", said)
		}
		return nil
	})
	s.delete("alive")
	s.awaitGone(v)
}

func TestAVMThatStartsAgainSaysThatALivenessProbeFailed(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := guest("again", cloudConfig())
	v.Spec.LivenessProbe = quick(vmi.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9)}})
	v.Spec.LivenessProbe.InitialDelaySeconds = 30 // a guest that has not run was ended before its start
	s.applyVM(vmi.RunAlways, v)
	vm := s.awaitVM("again", "ended", func(vm *vmi.VirtualMachine) bool { return vm.Status.Condition(vmi.ConditionFailure) != nil })
	failure := vm.Status.Condition(vmi.ConditionFailure)
	require.Equal(t, "LivenessProbeFailed", failure.Reason, failure.Message)
	require.Contains(t, failure.Message, "the last VMI ended: the liveness probe of the guest failed; ")
	of := "jsonpath={.items[?(@.involvedObject.kind==\"VirtualMachine\")].reason}"
	eventually(t, soon, func() error {
		if said := s.kubectl("get", "events", "-o", of); !strings.Contains(said, "LivenessProbeFailed") {
			return fmt.Errorf("the VM has the events %s", said)
		}
		return nil
	})
	require.NotContains(t, s.kubectl("get", "events", "-o", of), "Evicted")
}
