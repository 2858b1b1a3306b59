package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// Config is what a launcher pod depends on beside its machine.
type Config struct {
	// Image is the reference of the virt-launcher image. Required.
	Image string
	// ImagePullPolicy says when the launcher image is pulled. Empty: Kubernetes'
	// default for the reference.
	ImagePullPolicy corev1.PullPolicy
	// AllowEmulation renders pods whose guests run without hardware
	// virtualization, which any node can do. Otherwise they run on nodes with KVM
	// only.
	AllowEmulation bool
	// ContainerDisks is the way in which disks in container images reach the
	// machine. Empty: ImageVolume.
	ContainerDisks ContainerDisks
	// Architecture is the processor architecture of the guests, as in GOARCH.
	// Empty: amd64.
	Architecture string
	// Defaults are what the cluster decides for machines that leave it open. Zero:
	// KubeVirt's. Architecture above is the one that counts.
	Defaults defaults.Profile
	// Limits are what the cluster allows. Zero: what KubeVirt does.
	Limits validate.Limits
	// Overhead is the memory that a pod needs beside its guest's. Nil: the
	// function [Overhead].
	Overhead func(Machine) resource.Quantity
}

// ContainerDisks is a way in which disks in container images reach the machine.
type ContainerDisks string

const (
	// ImageVolume mounts the container image as a volume of the pod. It needs
	// Kubernetes 1.35 or newer, or the feature gate ImageVolume.
	ImageVolume ContainerDisks = "ImageVolume"
	// InitCopy copies the disk into the pod before the machine starts. It works
	// everywhere and needs time and space for the copy.
	InitCopy ContainerDisks = "InitCopy"
)

func (c Config) overhead(m Machine) resource.Quantity {
	if c.Overhead != nil {
		return c.Overhead(m)
	}
	return Overhead(m)
}

func (c Config) architecture() string {
	if c.Architecture != "" {
		return c.Architecture
	}
	return "amd64"
}

func (c Config) profile() defaults.Profile {
	p := c.Defaults
	p.Architecture = c.architecture()
	return p
}

func (c Config) limits() validate.Limits {
	l := c.Limits
	l.Architecture = c.architecture()
	return l
}
