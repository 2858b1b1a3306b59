package e2e

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const (
	// endLabel is on every guest and pod that policies are for.
	endLabel = "end"
	// nearMAC is the MAC address that the guest near asks for.
	nearMAC = "02:00:00:12:34:57"
)

// ends are two pods and three guests: near and bridged are on the node of the pod one,
// far is on that of the pod two.
type ends struct {
	one, two, near, far, bridged end
}

func (e ends) guests() []end { return []end{e.near, e.far, e.bridged} }
func (e ends) all() []end    { return append(e.guests(), e.one, e.two) }

// startEnds starts all ends in the namespace.
func (s space) startEnds() ends {
	s.t.Helper()
	var e ends
	e.one = s.endPod("one", "n1", map[string]string{"role": "friend"})
	labelled := func(v *vmi.VirtualMachineInstance) {
		v.Labels[endLabel], v.Spec.Hostname, v.Spec.Subdomain = "yes", v.Name, "ends"
	}
	near := vmi.Interface{Name: "default", MacAddress: nearMAC, InterfaceBinding: vmi.InterfaceBinding{Masquerade: &vmi.InterfaceMasquerade{}}}
	near.Ports = []vmi.Port{{Port: 8080, Protocol: "TCP"}, {Port: 8090, Protocol: "UDP"}}
	s.create(endGuest("near", "n1", e.one, labelled, vmitest.WithInterface(near, vmi.NetworkSource{Pod: &vmi.PodNetwork{}})))
	s.create(endGuest("far", "n2", e.one, labelled, vmitest.WithMasquerade("default")))
	s.create(endGuest("bridged", "n1", e.one, labelled, vmitest.WithBridge("default")))
	e.two = s.endPod("two", "n2", map[string]string{"role": "stranger"})
	for _, g := range []struct {
		name string
		end  *end
	}{{"near", &e.near}, {"far", &e.far}, {"bridged", &e.bridged}} {
		*g.end = s.endOf(g.name, s.pod(s.awaitPhase(g.name, vmi.PhaseRunning)))
	}
	// The guests have no client for DHCPv6. The default route is of the advertisements.
	for _, g := range []end{e.near, e.far} {
		g.must("ip", "-6", "addr", "add", "fd10:0:2::2/120", "dev", "eth0")
	}
	e.bridged.must("ip", "-6", "addr", "add", e.bridged.addresses[1]+"/64", "dev", "eth0")
	for _, g := range e.guests() {
		eventually(s.t, soon, func() error { // an address is used when no other host has it
			if _, err := g.ask("tcp", e.two.addresses[1], tcpPort); err != nil {
				return fmt.Errorf("%w\n%s", err, g.must("sh", "-c", "ip -6 addr; ip -6 route"))
			}
			return nil
		})
	}
	return e
}

func TestGuestsAreOnThePodNetworkAsPodsAre(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	began := time.Now()
	e := s.startEnds()
	for _, step := range []struct {
		name string
		do   func(space, ends)
	}{
		{"each end reaches every other", reachAll},
		{"only the ports of the list are the guest's", reachOnlyPorts},
		{"Services lead to guests", reachServices},
		{"a guest of IPv6 alone answers over Services", reachWithoutIPv4},
		{"names lead to guests, and guests resolve names", resolveNames},
		{"guests reach the API server", reachAPIServer},
		{"links are as the pods' are", compareLinks},
		{"a lease is renewed", renewLease},
		{"nothing is lost", loseNothing},
		{"policies are for guests as for pods", limitByPolicies},
		{"a cable that is pulled and plugged in again", pullCables},
	} {
		t.Logf("%5.1f s: %s", time.Since(began).Seconds(), step.name)
		step.do(s, e)
	}
	t.Logf("%5.1f s: end", time.Since(began).Seconds())
}

// reachAll goes from each end to each other, on the same node and on the other one.
func reachAll(_ space, e ends) {
	for _, from := range e.all() {
		for _, to := range e.all() {
			if from.name != to.name {
				from.reaches(to)
			}
		}
	}
}

// reachOnlyPorts asks at ports at which near listens and which it does not list.
func reachOnlyPorts(s space, e ends) {
	for protocol, port := range map[string]string{"tcp": tcpHidden, "udp": udpHidden} {
		require.Equal(s.t, "near saw 127.0.0.1", e.near.answerOf(protocol, "127.0.0.1", port), "it listens")
		for _, address := range e.near.addresses {
			_, err := e.one.ask(protocol, address, port)
			require.Error(s.t, err, "%s of near answered at %s", protocol, port)
		}
		e.one.answerOf(protocol, e.far.addresses[0], port) // without a list, every port is the guest's
	}
}

// nodePort makes a Service of the guest for both families, which each node serves.
func (s space) nodePort(name string, policy corev1.ServiceExternalTrafficPolicy) *corev1.Service {
	s.t.Helper()
	svc, err := world.kube.CoreV1().Services(s.name).Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name}, Type: corev1.ServiceTypeNodePort,
			ExternalTrafficPolicy: policy, IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
			Ports: []corev1.ServicePort{
				{Name: "tcp", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.Parse(tcpPort)},
				{Name: "udp", Port: 81, Protocol: corev1.ProtocolUDP, TargetPort: intstr.Parse(udpPort)},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return svc
}

// reachServices reaches guests by the addresses and the name of a Service, and by ports of nodes.
func reachServices(s space, e ends) {
	local, anywhere := s.nodePort("near", corev1.ServiceExternalTrafficPolicyLocal), s.nodePort("far", corev1.ServiceExternalTrafficPolicyCluster)
	for _, from := range []end{e.one, e.two, e.far, e.bridged} {
		for family, address := range local.Spec.ClusterIPs {
			for protocol, port := range map[string]string{"tcp": "80", "udp": "81"} {
				require.Equal(s.t, "near saw "+from.addresses[family], from.answerOf(protocol, address, port))
			}
		}
		require.Contains(s.t, from.answerOf("tcp", "near", "80"), "near saw ")
	}
	// From another node: the guest sees who asks where the Service keeps it so.
	for _, ask := range []struct {
		from  end
		to    string
		svc   *corev1.Service
		wants string
	}{
		{e.two, plan.NodeAddress(1).Addr().String(), local, "near saw " + plan.NodeAddress(2).Addr().String()},
		{e.two, plan.NodeAddress6(1).Addr().String(), local, "near saw " + plan.NodeAddress6(2).Addr().String()},
		{e.two, plan.NodeAddress(1).Addr().String(), anywhere, "far saw "},
	} {
		var got string
		eventually(s.t, soon, func() error {
			c, err := networktest.Dial(s.t, ask.from.node, "tcp", net.JoinHostPort(ask.to, strconv.Itoa(int(ask.svc.Spec.Ports[0].NodePort))))
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := c.Write([]byte("who\n")); err != nil {
				return err
			}
			b := make([]byte, 200)
			n, err := c.Read(b)
			got = strings.TrimSpace(string(b[:n]))
			return err
		})
		require.Contains(s.t, got, ask.wants)
	}
}

// reachWithoutIPv4 reaches a guest by a Service of each family alone, and by that of IPv6
// again when the guest has no IPv4 address.
func reachWithoutIPv4(s space, e ends) {
	services := map[corev1.IPFamily]string{}
	for _, family := range []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol} {
		began := time.Now()
		svc, err := world.kube.CoreV1().Services(s.name).Create(s.t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "far-" + strings.ToLower(string(family))},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "far"}, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack), IPFamilies: []corev1.IPFamily{family},
				Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.Parse(tcpPort)}},
			},
		}, metav1.CreateOptions{})
		require.NoError(s.t, err)
		services[family] = svc.Spec.ClusterIP
		e.one.awaitAnswer(svc.Spec.ClusterIP, "far saw ")
		s.t.Logf("a Service of %s leads to the guest %.1f s after its creation", family, time.Since(began).Seconds())
	}
	six := e.far
	six.addresses[0] = six.addresses[1] // it is asked to run programs there
	six.must("ip", "-4", "addr", "flush", "dev", "eth0")
	defer func() {
		six.must("ip", "addr", "add", "10.0.2.2/24", "dev", "eth0")
		six.must("ip", "route", "add", "default", "via", "10.0.2.1", "dev", "eth0")
	}()
	for _, from := range []end{e.one, e.two, e.bridged} {
		require.Equal(s.t, "far saw "+from.addresses[1], from.answerOf("tcp", services[corev1.IPv6Protocol], "80"))
	}
	_, err := e.one.ask("tcp", services[corev1.IPv4Protocol], "80")
	require.Error(s.t, err, "it has no IPv4 address")
	require.Equal(s.t, "two saw "+six.addresses[1], six.answerOf("tcp", e.two.addresses[1], tcpPort))
}

// awaitAnswer asks at port 80 of the address until the answer has the text.
func (e end) awaitAnswer(address, text string) {
	e.t.Helper()
	eventually(e.t, soon, func() error {
		got, err := e.ask("tcp", address, "80")
		if err == nil && !strings.Contains(got, text) {
			err = fmt.Errorf("the answer is %s", got)
		}
		return err
	})
}

// resolveNames asks for the names of guests, of the cluster, and for one that does not exist.
func resolveNames(s space, e ends) {
	_, err := world.kube.CoreV1().Services(s.name).Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "ends"},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{endLabel: "yes"}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	for _, from := range []end{e.one, e.near, e.bridged} {
		for _, name := range []string{"far.ends." + s.name + ".svc." + plan.Domain, "far.ends"} {
			eventually(s.t, soon, func() error {
				got, err := from.run(soon, "peer", "resolve", name)
				if err == nil && got != "["+e.far.addresses[0]+"]\n" {
					err = fmt.Errorf("%s is %s", name, got)
				}
				return err
			})
		}
		require.Contains(s.t, from.must("peer", "resolve", "kubernetes.default"), plan.APIService.String())
		_, err := from.run(soon, "peer", "resolve", "example.com")
		require.ErrorContains(s.t, err, "no such host", "the answer for a name that does not exist comes too")
	}
}

// reachAPIServer gets a page of the API server, to which its Service leads.
func reachAPIServer(s space, e ends) {
	for _, g := range e.guests() {
		page, err := g.run(long, "peer", "get", "https://kubernetes.default.svc/version")
		require.NoError(s.t, err)
		require.Contains(s.t, page, "200 OK")
		require.Contains(s.t, page, "kubernetes.default.svc", "the certificate is the API server's")
		require.Contains(s.t, page, "gitVersion")
	}
}

// compareLinks looks at what the guests see of their links, and sends what just fits.
func compareLinks(s space, e ends) {
	require.Equal(s.t, nearMAC, strings.TrimSpace(e.near.must("cat", "/sys/class/net/eth0/address")))
	require.Equal(s.t, nearMAC, s.get("near").Status.Interfaces[0].MAC)
	mtu, err := strconv.Atoi(strings.TrimSpace(e.one.must("cat", "/sys/class/net/eth0/mtu")))
	require.NoError(s.t, err)
	headers := [2]int{28, 48} // of IP and UDP
	for _, g := range e.guests() {
		require.Equal(s.t, strconv.Itoa(mtu), strings.TrimSpace(g.must("cat", "/sys/class/net/eth0/mtu")))
		for _, pair := range [][2]end{{g, e.two}, {e.two, g}} {
			for family, address := range pair[1].addresses {
				to, fits := net.JoinHostPort(address, udpPort), mtu-headers[family]
				eventually(s.t, soon, func() error { // a datagram may be lost, and an emulated guest may answer late
					_, err := pair[0].run(soon, "peer", "large", to, strconv.Itoa(fits))
					return err
				})
				_, err := pair[0].run(soon, "peer", "large", to, strconv.Itoa(fits+1))
				require.ErrorContains(s.t, err, "message too long")
			}
		}
	}
}

// renewing has a client of DHCP renew its lease and prints what the client says.
const renewing = `udhcpc -f -i eth0 -s /bin/true > /run/renewing 2>&1 & client=$!
await() { for i in $(seq 2000); do [ $(grep -c "lease of" /run/renewing) -ge $1 ] && return; usleep 100000; done; }
await 1; kill -USR1 $client; await 2; kill $client; cat /run/renewing`

func renewLease(s space, e ends) {
	for _, g := range []end{e.near, e.bridged} {
		said, err := g.run(long, "sh", "-c", renewing)
		require.NoError(s.t, err)
		require.Contains(s.t, said, "renew", said)
		require.Equal(s.t, 2, strings.Count(said, "lease of "), said)
		g.reaches(e.two)
	}
}

// loseNothing makes connections and sends streams between pods and guests of the other
// node, all at once. FLOW is how long a stream takes.
func loseNothing(s space, e ends) {
	flow, err := time.ParseDuration(cmp.Or(os.Getenv("FLOW"), "4s"))
	require.NoError(s.t, err)
	seconds := strconv.Itoa(int(flow.Seconds()))
	var all sync.WaitGroup
	do := func(from, to end, command, count string) {
		all.Go(func() {
			out, err := from.run(flow+long, "peer", command, net.JoinHostPort(to.addresses[0], tcpPort), count)
			if err != nil {
				s.t.Error(err)
			}
			s.t.Logf("%s %s → %s: %s", command, from.name, to.name, strings.TrimSpace(out))
		})
	}
	do(e.two, e.near, "connect", "1000")
	do(e.near, e.two, "connect", "1000")
	all.Wait()
	do(e.one, e.far, "send", seconds)
	do(e.far, e.one, "send", seconds)
	do(e.two, e.bridged, "send", seconds)
	all.Wait()
	require.False(s.t, s.t.Failed())
}
