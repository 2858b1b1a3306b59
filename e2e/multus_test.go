package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// definitionIn matches the definition of a network in the page for users.
var definitionIn = regexp.MustCompile(`(?s)<<'EOF'\n(.*?)EOF\n`)

// documentedLAN is the network of the page: frames of the bridge that all nodes are on,
// without addresses.
func documentedLAN(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/secondary-networks.md")
	require.NoError(t, err)
	m := definitionIn.FindSubmatch(page)
	require.NotNil(t, m)
	return string(m[1])
}

// definition is a NetworkAttachmentDefinition with this configuration.
func definition(name, config string) string {
	return fmt.Sprintf(`apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: %s}
spec: {config: '{"cniVersion": "1.0.0", "name": %q, %s}'}
`, name, name, config)
}

// addressed is a network of the bridge whose addresses begin with first. Each node gives
// them for itself.
func addressed(name, subnet, first string) string {
	return definition(name, fmt.Sprintf(`"type": "bridge", "bridge": "br1", "ipam": {"type": "host-local", "ranges": [[{"subnet": %q, "rangeStart": %q}]]}`, subnet, first))
}

func (s space) define(definitions ...string) {
	s.t.Helper()
	_, err := world.kubectl.RunInput(s.t.Context(), strings.NewReader(strings.Join(definitions, "---\n")), "-n", s.name, "apply", "-f", "-")
	require.NoError(s.t, err)
}

// onNetworks is a guest with the number on the networks lan, addressed and macvlan
// beside the pod's, which writes to the console when it has reached the other guest there.
func onNetworks(name, node string, number, other int, addressed string) *vmi.VirtualMachineInstance {
	script := []string{"echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore"}
	for n, network := range []string{"192.168.77", "192.168.78", "192.168.79"} {
		to := fmt.Sprintf("%s.%d", network, other)
		script = append(script,
			fmt.Sprintf("echo eth%d is $(cat /sys/class/net/eth%d/address) > /dev/console", n+1, n+1),
			"until ping -c 1 -W 1 "+to+"; do sleep 1; done",
			"echo reached "+to+" > /dev/console")
	}
	v := guest(name, "#!/bin/sh\n"+strings.Join(append(script, "echo "+tried+" > /dev/console"), "\n")+"\n", onNode(node),
		vmitest.WithMultus("second", "lan"), vmitest.WithMultus("third", addressed), vmitest.WithMultus("fourth", "macvlan"), vmitest.WithGracePeriod(3))
	for n := range 3 {
		v.Spec.Domain.Devices.Interfaces[n+1].MacAddress = fmt.Sprintf("02:00:00:00:7%d:%02x", 7+n, number)
	}
	withNetworkData(v, fmt.Sprintf("version: 2\nethernets:\n  eth1: {addresses: [192.168.77.%d/24]}\n  eth3: {addresses: [192.168.79.%d/24]}\n", number, number))
	return v
}

// withNetworkData configures links of the guest that get no addresses by DHCP.
func withNetworkData(v *vmi.VirtualMachineInstance, data string) {
	for n := range v.Spec.Volumes {
		if seed := v.Spec.Volumes[n].CloudInitNoCloud; seed != nil {
			seed.NetworkData = data
		}
	}
}

func TestGuestsOfTwoNodesReachEachOtherOnTheNetworksOfMultusAsSoonAsTheyAreDefined(t *testing.T) {
	t.Parallel()
	s, elsewhere := newSpace(t), newSpace(t)
	nodes := world.cluster.NodeNames()
	elsewhere.define(addressed("addressed", "192.168.78.0/24", "192.168.78.20"))
	left := s.create(onNetworks("left", nodes[0], 10, 20, "addressed"))
	require.Contains(t, s.awaitReason("left", "NoNetworkFound"), "NetworkAttachmentDefinition lan does not exist in namespace "+s.name, "the message names what is missing")
	s.define(documentedLAN(t), addressed("addressed", "192.168.78.0/24", "192.168.78.10"), definition("macvlan", `"type": "macvlan", "master": "br1", "mode": "bridge"`))
	right := s.create(onNetworks("right", nodes[1], 20, 10, elsewhere.name+"/addressed"))
	for _, v := range []*vmi.VirtualMachineInstance{left, right} {
		v = s.awaitPhase(v.Name, vmi.PhaseRunning)
		require.Nil(t, v.Status.Condition(vmi.ConditionSynchronized))
		require.Len(t, v.Status.Interfaces, 4)
		require.Regexp(t, "^domain(, guest-agent)?$", v.Status.Interfaces[0].InfoSource)
		for n, i := range v.Status.Interfaces[1:] {
			asked := v.Spec.Domain.Devices.Interfaces[n+1]
			require.Equal(t, asked.Name, i.Name)
			require.Equal(t, asked.MacAddress, i.MAC)
			require.Regexp(t, "^domain(, guest-agent)?, multus-status$", i.InfoSource)
			require.Regexp(t, `^pod[0-9a-f]{11}$`, i.PodInterfaceName)
		}
		console := s.awaitConsole(v, tried)
		for n, i := range v.Status.Interfaces[1:] {
			require.Contains(t, console, fmt.Sprintf("eth%d is %s", n+1, i.MAC))
		}
		require.Contains(t, console, "eth2 has address "+v.Status.Interfaces[2].IP+"/24", "the guest gets the address of the network plugin by DHCP")
	}
	for _, v := range []*vmi.VirtualMachineInstance{left, right} {
		s.delete(v.Name)
	}
	s.awaitGone(left)
	s.awaitGone(right)
}

func TestADefaultNetworkOfMultusTakesThePlaceOfTheClustersBesideALinkThatIsDown(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.define(addressed("first", "192.168.80.0/24", "192.168.80.10"), documentedLAN(t))
	v := guest("elsewhere", cloudConfig("hostname: elsewhere", "runcmd:", "- echo the cable of eth1 is $(cat /sys/class/net/eth1/carrier) > /dev/console"),
		vmitest.WithMultus("second", "lan"), vmitest.WithGracePeriod(1))
	withNetworkData(v, "version: 2\nethernets:\n  eth1: {addresses: [192.168.81.1/24]}\n")
	v.Spec.Domain.Devices.Interfaces[1].State, v.Spec.Domain.Devices.Interfaces[1].MacAddress = vmi.InterfaceDown, "02:00:00:00:81:01"
	v.Spec.Networks[0] = vmi.Network{Name: "default", NetworkSource: vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: s.name + "/first", Default: true}}}
	v.Spec.Domain.Devices.Interfaces[0].InterfaceBinding = vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}
	s.create(v)
	v = s.awaitPhase(v.Name, vmi.PhaseRunning)
	i := v.Status.Interfaces[0]
	require.Equal(t, "eth0", i.PodInterfaceName)
	require.Equal(t, s.pod(v).Status.PodIP, i.IP)
	require.True(t, netip.MustParsePrefix("192.168.80.0/24").Contains(netip.MustParseAddr(i.IP)), i.IP)
	require.Equal(t, "down", v.Status.Interfaces[1].LinkState)
	require.Contains(t, s.awaitConsole(v, "the cable of eth1 is 0"), i.IP)

	// Another VMI has its MAC address on the network, as long as it is there.
	twin := guest("twin", cloudConfig(), vmitest.WithMultus("second", "lan"), onNode("nowhere"))
	twin.Spec.Domain.Devices.Interfaces[1].MacAddress = v.Spec.Domain.Devices.Interfaces[1].MacAddress
	s.create(twin)
	s.awaitEvent(v, "DuplicateMACAddress")
	c := s.get(v.Name).Status.Condition(vmi.ConditionDuplicateMACAddress)
	require.NotNil(t, c)
	require.Contains(t, c.Message, "on network "+s.name+"/lan, and so has VMI twin")
	s.delete("twin")
	eventually(t, soon, func() error {
		if c := s.get(v.Name).Status.Condition(vmi.ConditionDuplicateMACAddress); c != nil {
			return fmt.Errorf("%s", c.Message)
		}
		return nil
	})
}
