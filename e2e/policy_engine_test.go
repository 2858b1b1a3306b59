package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// policies are NetworkPolicies for all ends with the label: the first lets no pod in, the
// second the pod with the role friend, and the third lets nothing out but to that pod.
var policies = []string{`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec:
  podSelector: {matchLabels: {end: "yes"}}
  policyTypes: [Ingress]
`, `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: friends}
spec:
  podSelector: {matchLabels: {end: "yes"}}
  ingress:
  - from: [{podSelector: {matchLabels: {role: friend}}}]
    ports: [{port: 8080, protocol: TCP}]
`, `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: outgoing}
spec:
  podSelector: {matchLabels: {end: "yes"}}
  policyTypes: [Egress]
  egress:
  - to: [{podSelector: {matchLabels: {role: friend}}}]
`}

// limitByPolicies makes policies for guests and for a pod beside them, and sees the same of both.
func limitByPolicies(s space, e ends) {
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Log(policyLogs())
		}
	})
	beside := s.endPod("beside", "n1", map[string]string{endLabel: "yes"})
	limited := append(e.guests(), beside)

	s.policy(0)
	for _, to := range limited {
		s.awaitAnswer(e.two, to, "tcp", tcpPort, false)
		s.awaitAnswer(e.one, to, "tcp", tcpPort, false)
	}
	s.policy(1)
	for _, to := range limited {
		s.awaitAnswer(e.one, to, "tcp", tcpPort, true)
		s.awaitAnswer(e.one, to, "udp", udpPort, false)
		s.awaitAnswer(e.two, to, "tcp", tcpPort, false)
	}
	for _, from := range limited {
		s.awaitAnswer(from, e.two, "tcp", tcpPort, true)
	}
	s.policy(2)
	for _, from := range limited {
		s.awaitAnswer(from, e.two, "tcp", tcpPort, false)
		s.awaitAnswer(from, e.one, "tcp", tcpPort, true)
		s.awaitAnswer(from, e.one, "udp", udpPort, true)
	}
	s.kubectl("delete", "networkpolicies", "--all")
	for _, g := range limited {
		s.awaitAnswer(e.two, g, "udp", udpPort, true)
		s.awaitAnswer(g, e.two, "udp", udpPort, true)
	}
}

// policyLogs is what the programs say that make the rules of the nodes, each its last part.
func policyLogs() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(world.cluster.Kubeconfig), "*", "log", "policy.log"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&all, "%s:\n%s\n", file, text[max(0, len(text)-4<<10):])
	}
	return all.String()
}

// policy makes one of the policies.
func (s space) policy(n int) {
	s.t.Helper()
	_, err := world.kubectl.RunInput(s.t.Context(), strings.NewReader(policies[n]), "-n", s.name, "apply", "-f", "-")
	require.NoError(s.t, err)
}

// awaitAnswer waits until one end gets answers of the other by both families, or by none.
func (s space) awaitAnswer(from, to end, protocol, port string, want bool) {
	s.t.Helper()
	// A node changes its rules as a whole, by dozens of programs, and those of the families one
	// after the other.
	eventually(s.t, 3*soon, func() error {
		for _, address := range to.addresses {
			if _, err := from.ask(protocol, address, port); (err == nil) != want {
				return fmt.Errorf("%s → %s at %s by %s: %w", from.name, to.name, address, protocol, err)
			}
		}
		return nil
	})
}
