package config

import (
	"cmp"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// Config is what a cluster's configuration means for the components. The zero
// value is the default configuration.
type Config struct {
	// Defaults complete the VMIs.
	Defaults defaults.Profile
	// Limits are what the VMIs may have.
	Limits validate.Limits
	// Pods is how their pods are rendered.
	Pods Pods
	// Nodes is how nodes are labelled.
	Nodes Nodes
	// Launcher is what their launchers get.
	Launcher Launcher
	// Migrations are the settings of migrations that are set. Nil: none is. See
	// [Config.Migration].
	Migrations *vmi.MigrationConfiguration
	// ReferencePolicy is what becomes of VMs that name an instance type or a preference.
	// Empty: they keep what they name.
	ReferencePolicy vmi.InstancetypeReferencePolicy
	// Updates is how VMIs that run get the launcher of this version.
	Updates Updates
	// Agents are the versions of their guests' agents that are supported.
	Agents AgentVersions
	// Controller are the settings of virt-controller.
	Controller Component
	// Handler are the settings of virt-handler.
	Handler Component
	// NodeVerbosity is the verbosity of virt-handler on single nodes.
	NodeVerbosity map[string]uint
}

// Pods is how the pods of VMIs are rendered.
type Pods struct {
	// ImagePullPolicy says when the launcher image is pulled. Empty: as the
	// installation has it.
	ImagePullPolicy corev1.PullPolicy
	// Emulation lets guests run without hardware virtualization, on any node. Nil:
	// as the installation has it.
	Emulation *bool
	// CPUAllocationRatio is how many processors of guests share a CPU. 0: 10.
	CPUAllocationRatio int
	// MemoryOvercommit is how much memory guests see for each 100 that their
	// pods ask for. 0: 100.
	MemoryOvercommit int
	// OverheadRatio multiplies the memory that a pod needs besides its guest's.
	// 0: 1.
	OverheadRatio float64
	// StateStorageClass is the storage class of the claims for what outlasts VMIs
	// besides their disks. Empty: the default one.
	StateStorageClass string
	// HostDevices are the devices of nodes that VMIs may have, by their resources.
	HostDevices map[string]bool
	// NodeSelector are labels that every node with VMIs has.
	NodeSelector map[string]string
}

// Nodes is how nodes are labelled.
type Nodes struct {
	// ObsoleteModels are models of processors that no guest shall have. Nil: those
	// that have less than guests of the last fifteen years need.
	ObsoleteModels map[string]bool
}

// obsolete are the models that no guest shall have where nothing is configured.
var obsolete = []string{
	"486", "pentium", "pentium2", "pentium3", "pentiumpro", "coreduo", "n270", "core2duo", "Conroe", "athlon", "phenom",
	"qemu64", "qemu32", "kvm64", "kvm32", "Opteron_G1", "Opteron_G2",
}

// Obsolete are the models that no guest shall have.
func (n Nodes) Obsolete() map[string]bool {
	if n.ObsoleteModels != nil {
		return n.ObsoleteModels
	}
	all := map[string]bool{}
	for _, m := range obsolete {
		all[m] = true
	}
	return all
}

// Launcher is what a launcher gets besides its VMI.
type Launcher struct {
	// SMBIOS is what the guest reads about its maker. An empty field: as the
	// launcher has it.
	SMBIOS vmi.SMBIOSConfiguration `json:"smbios,omitzero"`
	// StatsPeriod is the time between two measurements of the guest's memory, in
	// seconds. 0: 10. Negative: it is not measured.
	StatsPeriod int `json:"statsPeriod,omitempty"`
	// Verbosity is how much it logs. 0: 2.
	Verbosity Verbosity `json:"verbosity,omitempty"`
	// ReserveBytes is the space of a claim that a new disk leaves free. 0: 128 KiB.
	ReserveBytes int64 `json:"reserveBytes,omitempty"`
	// TolerancePercent is by how many per cent a claim may be smaller than the disk in
	// it. 0: 10.
	TolerancePercent int64 `json:"tolerancePercent,omitempty"`
	// InspectionMemoryBytes is what the inspection of a disk image may have of memory.
	// 0: as the launcher has it.
	InspectionMemoryBytes int64 `json:"inspectionMemoryBytes,omitempty"`
}

// Verbosity is how much a component logs: 1 and 2 the usual, more also what
// changes nothing. 0 is the component's default.
type Verbosity uint

// Debug says that what changes nothing is logged too.
func (v Verbosity) Debug() bool { return v > 2 }

// Component are the settings of a component itself.
type Component struct {
	// QPS is the number of requests to the API server per second, and Burst that
	// of requests at once. 0: as the component has it.
	QPS   float32
	Burst int
	// Verbosity is how much it logs. 0: as its flag says.
	Verbosity Verbosity
}

// OnNode are the settings of virt-handler on this node.
func (c Config) OnNode(name string) Component {
	h := c.Handler
	if v := c.NodeVerbosity[name]; v != 0 {
		h.Verbosity = Verbosity(v)
	}
	return h
}

// Resolve is the configuration that k says, or everything that is wrong with it. A device
// of nodes that VMIs may not have as it is written is left out, and is no fault of the
// rest: leftOut says what is wrong with it.
func Resolve(k *vmi.KubeVirt) (Config, field.ErrorList) {
	if why := (*vmi.UnreadableError)(nil); errors.As(vmi.Unreadable(k), &why) {
		return Config{}, undecoded(why)
	}
	if faults := validate.KubeVirt(k); len(faults) > 0 {
		right := withoutFaultyDevices(k, faults)
		if left := validate.KubeVirt(right); len(left) > 0 {
			return Config{}, faults
		}
		k = right
	}
	in := &k.Spec.Configuration
	d := in.DeveloperConfiguration
	if d == nil {
		d = &vmi.DeveloperConfiguration{}
	}
	v := d.LogVerbosity
	if v == nil {
		v = &vmi.LogVerbosity{}
	}
	var policy vmi.InstancetypeReferencePolicy
	if t := in.Instancetype; t != nil && t.ReferencePolicy != nil && *t.ReferencePolicy != vmi.ReferencePolicyReference {
		policy = *t.ReferencePolicy
	}
	return Config{
		ReferencePolicy: policy,
		Defaults:        defaults.Configured(in),
		Limits:          validate.Configured(in),
		Pods:            pods(in, d),
		Launcher:        launcher(in, d, v),
		Nodes:           Nodes{ObsoleteModels: in.ObsoleteCPUModels},
		Migrations:      in.MigrationConfiguration,
		Updates:         updates(k.Spec.WorkloadUpdateStrategy),
		Agents:          in.SupportedGuestAgentVersions,
		Controller:      component(in.ControllerConfiguration, v.VirtController),
		Handler:         component(in.HandlerConfiguration, v.VirtHandler),
		NodeVerbosity:   v.NodeVerbosity,
	}, nil
}

// undecoded are the fields that cannot be decoded, as faults.
func undecoded(why *vmi.UnreadableError) field.ErrorList {
	var l field.ErrorList
	for _, f := range why.Fields {
		detail := f.Message
		if f.Value != "" {
			detail = f.Value + ": " + detail
		}
		l = append(l, &field.Error{Type: field.ErrorTypeTypeInvalid, Field: f.Path, BadValue: field.OmitValueType{}, Detail: detail})
	}
	return l
}

func launcher(in *vmi.KubeVirtConfiguration, d *vmi.DeveloperConfiguration, v *vmi.LogVerbosity) Launcher {
	l := Launcher{Verbosity: Verbosity(v.VirtLauncher)}
	if in.SMBIOS != nil {
		l.SMBIOS = *in.SMBIOS
	}
	if p := in.MemBalloonStatsPeriod; p != nil {
		l.StatsPeriod = cmp.Or(int(*p), -1)
	}
	l.ReserveBytes, l.TolerancePercent = int64(d.MinimumReservePVCBytes), int64(d.LessPVCSpaceToleration)
	if v := d.DiskVerification; v != nil && v.MemoryLimit != nil {
		l.InspectionMemoryBytes = v.MemoryLimit.Value()
	}
	return l
}

func component(in *vmi.ComponentConfiguration, verbosity uint) Component {
	c := Component{Verbosity: Verbosity(verbosity)}
	if in == nil || in.RestClient == nil || in.RestClient.RateLimiter == nil || in.RestClient.RateLimiter.TokenBucketRateLimiter == nil {
		return c
	}
	b := in.RestClient.RateLimiter.TokenBucketRateLimiter
	c.QPS, c.Burst = b.QPS, b.Burst
	return c
}
