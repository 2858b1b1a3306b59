package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// TestTheStatusReportsTheGuestsAgent does not run beside the others: what it
// configures is every VMI's.
func TestTheStatusReportsTheGuestsAgent(t *testing.T) {
	s := newSpace(t)
	s.service("agent")
	seen := s.newVisitor()
	s.create(guest("agent", cloudConfig(
		"write_files:",
		"- path: /www/cgi-bin/stop",
		"  permissions: '0755'",
		`  content: "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nkillall qemu-ga\n"`,
		"- path: /www/cgi-bin/start",
		"  permissions: '0755'",
		`  content: "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n/usr/sbin/qemu-ga -m virtio-serial -p /dev/vport*p1 -t /run >/dev/null 2>&1 &\n"`,
	)))
	s.awaitPhase("agent", vmi.PhaseRunning)
	await := func(what string, is func(connected, unsupported *vmi.Condition) bool) {
		t.Helper()
		eventually(t, long, func() error {
			v := s.get("agent")
			if !is(v.Status.Condition(vmi.ConditionAgentConnected), v.Status.Condition(vmi.ConditionAgentVersionNotSupported)) {
				return fmt.Errorf("not yet: %s: %+v", what, v.Status.Conditions)
			}
			return nil
		})
	}
	holds := func(c *vmi.Condition) bool { return c != nil && c.Status == corev1.ConditionTrue }
	await("an agent of a supported version", func(connected, unsupported *vmi.Condition) bool { return holds(connected) && unsupported == nil })

	undo := configure(t, func(c *vmi.KubeVirtConfiguration) { c.SupportedGuestAgentVersions = []string{"1.*"} })
	await("an agent of a version that is not supported", func(connected, unsupported *vmi.Condition) bool {
		return holds(connected) && holds(unsupported) && strings.Contains(unsupported.Message, "has version 7.2.") && strings.HasSuffix(unsupported.Message, "supported are 1.*")
	})
	undo()
	await("an agent that is supported again", func(connected, unsupported *vmi.Condition) bool { return holds(connected) && unsupported == nil })

	// What the agent of this guest would reboot it with is not there.
	vmis := world.vmis.VirtualMachineInstances(s.name)
	info, err := vmis.GuestInfo(t.Context(), "agent")
	require.NoError(t, err)
	require.Contains(t, info.GuestAgentVersion, "7.2.")
	require.NoError(t, vmis.SoftReboot(t.Context(), "agent"))
	eventually(t, long, func() error {
		if s.get("agent").Status.GuestReboots == nil {
			return errors.New("the guest did not reboot")
		}
		return nil
	})
	log, err := s.readConsole(s.get("agent"))
	require.NoError(t, err)
	require.Contains(t, log, "press the power button for a reboot")

	seen.awaitPage("http://agent/cgi-bin/stop")
	await("no agent", func(connected, unsupported *vmi.Condition) bool { return connected == nil && unsupported == nil })
	seen.awaitPage("http://agent/cgi-bin/start")
	await("an agent again", func(connected, unsupported *vmi.Condition) bool { return holds(connected) && unsupported == nil })

	// The agent ends while libvirtd is stopped and sends no event.
	v := s.get("agent")
	onNode := s.traces(v)
	daemon, _, _ := strings.Cut(onNode.process("libvirtd"), " ")
	onNode.run("kill -STOP " + daemon)
	seen.awaitPage("http://agent/cgi-bin/stop")
	onNode.run("kill -KILL " + daemon)
	await("no agent after the daemon's death", func(connected, unsupported *vmi.Condition) bool { return connected == nil && unsupported == nil })
	s.delete("agent")
	s.awaitGone(v)
}
