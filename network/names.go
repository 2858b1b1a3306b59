package network

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/podvisor/podvisor/vmi"
)

// PodBridge is the name of the bridge between the pod network's interface and
// the guest. Service meshes take the guest's traffic from it.
const PodBridge = "k6t-eth0"

// podLink is the name of the pod network's link, a contract of Kubernetes.
const podLink = "eth0"

// Names are the names of the links of one interface in the pod's namespace. Each
// is at most 15 bytes long, which is what Linux takes.
type Names struct {
	// Pod is the link that a network plugin gave the pod.
	Pod string
	// NIC is that same link while a stand-in has its name.
	NIC string
	// Interim is the stand-in while Pod is still the name of the plugin's link.
	Interim string
	// Bridge has the guest's tap as a port.
	Bridge string
	// Tap is the pod's end of the guest's interface.
	Tap string
	// Router is the tap device by which the launcher offers the guest addresses of
	// IPv6.
	Router string
}

// NamesOf returns the names of the links for a network whose link in the pod has
// the name link: KubeVirt's fixed names for eth0, and names by the hash of the
// network's name for every other link. The names of two networks differ as far
// as their hashes do; [Plan] refuses VMIs where they do not.
func NamesOf(network, link string) Names {
	if link == podLink {
		return Names{Pod: podLink, NIC: "eth0-nic", Interim: "eth0-new", Bridge: PodBridge, Tap: "tap0", Router: "ra0"}
	}
	h := hash(network)
	return Names{Pod: link, NIC: h + "-nic", Interim: h + "-new", Bridge: "k6t-" + h, Tap: "tap" + h, Router: "ra-" + h}
}

// PodLinkName is the name that the link of a network has in the pod unless a
// network plugin is configured otherwise: eth0 for the network that a pod has
// by default, pod and a hash of the network's name for every other.
func PodLinkName(n vmi.Network) string {
	if n.Pod != nil || n.Multus != nil && n.Multus.Default {
		return podLink
	}
	return "pod" + hash(n.Name)
}

// hash has 11 bytes, so that a prefix or suffix of 4 fits.
func hash(network string) string {
	sum := sha256.Sum256([]byte(network))
	return hex.EncodeToString(sum[:])[:11]
}

func (n Names) all() []string { return []string{n.Pod, n.NIC, n.Interim, n.Bridge, n.Tap, n.Router} }
