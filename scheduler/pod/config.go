package pod

import (
	"cmp"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// Launcher is what launcher pods are made with: how Podvisor is installed.
type Launcher struct {
	// Build names the program and the settings that render, by which a reviewer knows
	// whether it renders the same. Empty: the pod names none.
	Build string
	// Image is the reference of the virt-launcher image. Required.
	Image string
	// FullImage is the reference of the image with what few VMIs need besides: UEFI
	// firmware and the TPM emulator. Empty: Image with -full before its tag; where Image
	// is named by its digest there is none, and a VMI that needs it is not rendered.
	FullImage string
	// ImagePullPolicy says when the launcher image is pulled, if Config.Cluster does not.
	// Empty: IfNotPresent, as in KubeVirt, whatever the tag.
	ImagePullPolicy corev1.PullPolicy
	// AllowEmulation renders pods whose guests run without hardware
	// virtualization, which any node can do, if Config.Cluster does not say. Otherwise
	// they run on nodes with KVM only.
	AllowEmulation bool
	// ContainerDisks is the way in which disks in container images reach the
	// VMI. Empty: ImageVolume.
	ContainerDisks ContainerDisks
	// Architecture is the processor architecture of guests that name none, as in
	// GOARCH. Empty: that of Config.Cluster, or else amd64.
	Architecture string
	// Overhead is the memory that a pod needs besides its guest's. Nil: the
	// function [Overhead].
	Overhead func(Guest) resource.Quantity
	// Traits are what the parts of VMIs ask of their pods. Nil: [vmi.Traits].
	Traits []vmi.Trait
	// Bindings are how interfaces may be bound to the networks of the pod, as in the
	// handlers' configuration. Nil: [network.Bindings].
	Bindings []network.Binding
	// VolumeKinds are the kinds of volumes that are served. Nil: [volume.Kinds].
	VolumeKinds []volume.Kind
}

// Config is what a launcher pod depends on besides its VMI.
type Config struct {
	// Launcher is the same for all pods of an installation.
	Launcher
	// Cluster is the configuration of the cluster. The zero value is the default
	// one.
	Cluster config.Config
	// Role is what the pod is for the instance. The zero value: the instance runs in it.
	Role Role
	// Facts are what was observed for this instance. The zero value is right for an
	// instance whose volumes name no claim and whose networks need no resource.
	Facts Facts
}

// Facts are what was observed in the cluster for one instance.
type Facts struct {
	// Claims are the claims of the instance's namespace that its volumes name, by
	// their names. A nil value: the claim does not exist.
	Claims map[string]*corev1.PersistentVolumeClaim
	// Networks are what the instance's networks of Multus need, by the networks' names.
	// A network that is not in it, or is nil, needs nothing.
	Networks map[string]*cni.Definition
	// State is the claim with what outlasts the instance besides its disks, of those
	// with the label the last one. Nil: it is the first one, which may not exist yet. A target
	// has one of its own.
	State *corev1.PersistentVolumeClaim
	// Move is what a target depends on besides. Nil: on nothing.
	Move *Move
}

// ContainerDisks is a way in which disks in container images reach the pod.
type ContainerDisks = volume.ContainerDisks

const (
	// ImageVolume mounts the container image as a volume of the pod. It needs
	// Kubernetes 1.35 or newer, or the feature gate ImageVolume.
	ImageVolume = volume.ImageVolume
	// InitCopy copies the disk into the pod before the compute container starts. It
	// works everywhere and needs time and space for the copy.
	InitCopy = volume.InitCopy
)

// overhead is the memory besides the guest's, in whole MiB, which people can read.
func (c Config) overhead(g Guest) resource.Quantity {
	f := c.Overhead
	if f == nil {
		f = Overhead
	}
	q := f(g)
	if r := c.Cluster.Pods.OverheadRatio; r != 0 {
		q = *resource.NewQuantity(int64(math.Ceil(float64(q.Value())*r/mib))*mib, resource.BinarySI)
	}
	return q
}

// traits are those of the parts of VMIs.
func (c Config) traits() []vmi.Trait {
	if c.Traits == nil {
		return vmi.Traits()
	}
	return c.Traits
}

// Emulation says that guests run without hardware virtualization: the cluster's configuration
// says so, or does not say and AllowEmulation is true.
func (c Config) Emulation() bool {
	if e := c.Cluster.Pods.Emulation; e != nil {
		return *e
	}
	return c.AllowEmulation
}

// pullPolicy says when the launcher image is pulled.
func (c Config) pullPolicy() corev1.PullPolicy {
	return cmp.Or(c.Cluster.Pods.ImagePullPolicy, c.ImagePullPolicy, corev1.PullIfNotPresent)
}

func (c Config) architecture() string {
	return cmp.Or(c.Architecture, c.Cluster.Defaults.Architecture, defaults.AMD64)
}

func (c Config) profile() defaults.Profile {
	p := c.Cluster.Defaults
	p.Architecture = c.architecture()
	return p
}

func (c Config) limits() validate.Limits {
	l := c.Cluster.Limits
	l.Architecture = c.architecture()
	return l
}
