package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// The ports at which the ends of connections answer. A guest with a list of ports lists
// the first of each pair.
const (
	tcpPort, tcpHidden = "8080", "8081"
	udpPort, udpHidden = "8090", "8091"
	givePort           = "9999"
)

// serveEnds is what answers at those ports, see images/tools/peer.
var serveEnds = []string{"peer", "serve", tcpPort + "," + tcpHidden, udpPort + "," + udpHidden}

// end is a pod or a guest that answers at the ports, and runs what the test asks for.
type end struct {
	space
	name string
	// node is the network namespace of its node, from which the test asks.
	node *os.File
	// addresses are its pod's, IPv4 first.
	addresses [2]string
}

// endOf is the end in the pod, once it answers.
func (s space) endOf(name string, p corev1.Pod) end {
	s.t.Helper()
	require.Len(s.t, p.Status.PodIPs, 2, "pod %s has addresses of both families", p.Name)
	e := end{s, name, traces{t: s.t, node: p.Spec.NodeName}.namespace(""), [2]string{p.Status.PodIPs[0].IP, p.Status.PodIPs[1].IP}}
	eventually(s.t, long, func() error {
		_, err := e.run(soon, "true")
		return err
	})
	return e
}

// endPod starts a pod that is an end.
func (s space) endPod(name, node string, labels map[string]string) end {
	s.t.Helper()
	_, err := world.kube.CoreV1().Pods(s.name).Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: node},
			TerminationGracePeriodSeconds: new(int64),
			SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "end", Image: images.Reference("tools"), ImagePullPolicy: corev1.PullIfNotPresent, Command: serveEnds,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.kubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout=300s")
	p, err := world.kube.CoreV1().Pods(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return s.endOf(name, *p)
}

// endGuest is a guest that fetches the program from the end and becomes one too.
func endGuest(name, node string, from end, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := guest(name, cloudConfig(
		"hostname: "+name,
		"runcmd:",
		"- until nc "+from.addresses[0]+" "+givePort+" < /dev/null > /bin/peer && [ -s /bin/peer ]; do sleep 1; done",
		"- chmod +x /bin/peer",
		"- "+strings.Join(serveEnds, " ")+" > /dev/null 2>&1 &",
	), vmitest.WithGracePeriod(1), onNode(node))
	v.Spec.Domain.Devices.Interfaces, v.Spec.Networks = nil, nil
	for _, o := range options {
		o(v)
	}
	return v
}

// run runs a program at the end and returns what it wrote.
func (e end) run(limit time.Duration, args ...string) (string, error) {
	e.t.Helper()
	list, err := json.Marshal(args)
	require.NoError(e.t, err)
	c, err := networktest.Dial(e.t, e.node, "tcp", net.JoinHostPort(e.addresses[0], tcpPort))
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(c, "run %s\n", list); err != nil {
		return "", err
	}
	var r struct{ Output, Error string }
	if err := json.NewDecoder(c).Decode(&r); err != nil {
		return "", fmt.Errorf("%s on %s: %w", strings.Join(args, " "), e.name, err)
	}
	if r.Error != "" {
		err = errors.New(strings.Join(args, " ") + " on " + e.name + ": " + r.Error + ": " + r.Output)
	}
	return r.Output, err
}

// must runs a program at the end that succeeds.
func (e end) must(args ...string) string {
	e.t.Helper()
	out, err := e.run(soon, args...)
	require.NoError(e.t, err)
	return out
}

// ask is what the address says when the end asks it: who it is, and whom it saw.
func (e end) ask(protocol, host, port string) (string, error) {
	e.t.Helper()
	out, err := e.run(soon, "peer", "ask", protocol, net.JoinHostPort(host, port))
	return strings.TrimSpace(out), err
}

// answerOf is what the address says once it answers: Services and names are in force a moment
// later, and an emulated guest may answer late.
func (e end) answerOf(protocol, host, port string) (got string) {
	e.t.Helper()
	eventually(e.t, soon, func() (err error) {
		got, err = e.ask(protocol, host, port)
		return err
	})
	return got
}

// reaches requires that the end reaches the other one by both protocols and families,
// and is seen there with its own addresses.
func (e end) reaches(other end) {
	e.t.Helper()
	for family, address := range other.addresses {
		for protocol, port := range map[string]string{"tcp": tcpPort, "udp": udpPort} {
			var got string
			eventually(e.t, soon, func() (err error) { // an emulated guest may answer late
				got, err = e.ask(protocol, address, port)
				return err
			})
			require.Equal(e.t, other.name+" saw "+e.addresses[family], got, "%s by %s", e.name, protocol)
		}
	}
}

// hold opens a connection to the other end and keeps it open. The function that it
// returns requires that bytes still go and come by it.
func (e end) hold(other end) (goesOn func()) {
	e.t.Helper()
	file := "/tmp/held-" + other.name
	e.must("sh", "-c", "peer hold "+net.JoinHostPort(other.addresses[0], tcpPort)+" "+file+" > "+file+".error 2>&1 &")
	count := func() int {
		out, _ := e.run(soon, "cat", file) // not there before the first answer
		n, _ := strconv.Atoi(strings.TrimSpace(out))
		return n
	}
	before := 0
	goesOn = func() {
		e.t.Helper()
		before = max(before, count()) // a count that cannot be read is 0
		eventually(e.t, soon, func() error {
			if now := count(); now <= before {
				return fmt.Errorf("the connection of %s to %s stands at %d lines: %s", e.name, other.name, now, e.must("cat", file+".error"))
			}
			return nil
		})
	}
	goesOn()
	return goesOn
}
