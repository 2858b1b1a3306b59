package vmi

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VirtualMachineInstance is one virtual machine, from its start to its end. It
// runs once, in one pod, and does not start again when it has ended.
//
// A field selector may name status.nodeName and status.migrationState.targetNode beside
// metadata.name and metadata.namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=vmi;vmis,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.status.nodeName`
// +kubebuilder:selectablefield:JSONPath=`.status.migrationState.targetNode`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.interfaces[0].ipAddress`
// +kubebuilder:printcolumn:name="NodeName",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Live-Migratable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='LiveMigratable')].status`
// +kubebuilder:printcolumn:name="Paused",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Paused')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Deleting",type=date,JSONPath=`.metadata.deletionTimestamp`
type VirtualMachineInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired VMI. It cannot be changed after creation.
	Spec VirtualMachineInstanceSpec `json:"spec"`

	// Status is the observed VMI. Only Podvisor writes it.
	// +optional
	// +structType=atomic
	Status VirtualMachineInstanceStatus `json:"status,omitempty"`
}

// VirtualMachineInstanceList is a list of VirtualMachineInstances.
//
// +kubebuilder:object:root=true
type VirtualMachineInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineInstance `json:"items"`
}

// VirtualMachineInstanceSpec describes a VMI: its hardware in
// Domain, what its disks and interfaces are attached to in Volumes and
// Networks, and where it may run.
//
// +kubebuilder:validation:XValidation:rule="!has(self.dnsPolicy) || self.dnsPolicy != 'None' || has(self.dnsConfig)",message="dnsPolicy None needs dnsConfig with at least one name server: set dnsConfig, or choose another dnsPolicy",fieldPath=".dnsConfig"
// +kubebuilder:validation:XValidation:rule="!has(self.startStrategy) || !has(self.livenessProbe)",message="startStrategy Paused excludes livenessProbe, which would end a paused VMI: leave one of them out",fieldPath=".startStrategy"
type VirtualMachineInstanceSpec struct {
	// Domain is the guest's hardware.
	Domain DomainSpec `json:"domain"`

	// Volumes are the sources of the VMI's disks and file systems. Each is used by
	// the disk or file system of the same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Volumes []Volume `json:"volumes,omitempty"`

	// Networks are what the VMI's interfaces are attached to. Each is used by the
	// interface of the same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Networks []Network `json:"networks,omitempty"`

	// Architecture is the processor architecture of the guest, and of the nodes
	// that it can run on: amd64 or arm64. A nodeSelector that asks for another one
	// is refused. Default: the cluster's.
	// +optional
	// +podvisor:unservedValues=s390x,VMIs of this architecture do not run yet
	// +kubebuilder:validation:XValidation:rule="self in ['', 'amd64', 'arm64']",message="VMIs of this architecture do not run yet: set architecture to amd64 or arm64, or leave it out"
	Architecture string `json:"architecture,omitempty"`

	// TerminationGracePeriodSeconds is how long the guest may take to power off
	// after it was asked to, in seconds. When the time is over, or at once if it
	// is 0, the guest is switched off. At most a year. Default: 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// EvictionStrategy says what happens when the VMI's pod is to be evicted from
	// its node, as kubectl drain does: None asks the guest to power off and ends
	// the VMI, LiveMigrate migrates it and refuses the eviction while that cannot
	// be done, LiveMigrateIfPossible migrates it or else ends it, External refuses
	// the eviction and leaves it to another controller, by setting
	// status.evacuationNodeName. VMIs cannot be migrated yet: for now LiveMigrate
	// always refuses, and LiveMigrateIfPossible is None. Default: the cluster's,
	// or None.
	// +optional
	EvictionStrategy *EvictionStrategy `json:"evictionStrategy,omitempty"`

	// StartStrategy Paused starts the guest with its processors stopped, until the
	// VMI is unpaused. Default: it runs at once.
	// +optional
	StartStrategy *StartStrategy `json:"startStrategy,omitempty"`

	// LivenessProbe ends the VMI if the guest does not answer. Default: none.
	// +optional
	LivenessProbe *Probe `json:"livenessProbe,omitempty"`

	// ReadinessProbe makes the condition Ready False, which takes the VMI out of
	// Services, while the guest does not answer. Default: none.
	// +optional
	ReadinessProbe *Probe `json:"readinessProbe,omitempty"`

	// Hostname is the host name of the pod and the one that the guest is offered
	// by DHCP and cloud-init, without any dot. Default: the VMI's name, of which
	// the pod takes what comes before the first dot.
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// Subdomain makes the VMI reachable as hostname.subdomain.namespace.svc when a
	// headless Service of that name selects it. The guest gets that domain by
	// DHCP.
	// +optional
	Subdomain string `json:"subdomain,omitempty"`

	// DNSPolicy says which name servers the VMI uses: ClusterFirst, Default (the
	// node's), ClusterFirstWithHostNet or None (only those of dnsConfig, which
	// must name one). The guest gets those of its pod by DHCP, as far as they are
	// of IPv4 and not on the loopback. Default: ClusterFirst.
	// +optional
	// +kubebuilder:validation:Enum=ClusterFirst;ClusterFirstWithHostNet;Default;None
	DNSPolicy corev1.DNSPolicy `json:"dnsPolicy,omitempty"`

	// DNSConfig adds name servers, search domains and options to those that follow
	// from dnsPolicy. The guest gets name servers of IPv4 and search domains by
	// DHCP, the first of which is its own domain; the options are for the pod
	// only.
	// +optional
	DNSConfig *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`

	// AccessCredentials are keys and passwords that are put into the guest.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	AccessCredentials []AccessCredential `json:"accessCredentials,omitempty"`

	// ResourceClaims are the claims of dynamic resource allocation that the pod
	// has. Devices refer to them by their names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +podvisor:unserved=no device of the node is passed through
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`

	// NodeSelector limits the nodes that the VMI may run on to those with all of
	// these labels.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Affinity says near which pods and on which nodes the VMI should run, or
	// should not.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints say how evenly VMIs are spread over zones or
	// nodes.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// Tolerations let the VMI run on nodes with matching taints.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// SchedulerName is the scheduler that places the VMI's pod. One that does not
	// exist leaves the VMI in Scheduling. Default: the cluster's default
	// scheduler.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// PriorityClassName is the priority of the VMI's pod: a higher one may preempt
	// others on a full node. A class that does not exist keeps the pod from being
	// made. Default: the cluster's default.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// ServiceAccountName is the service account that the VMI's pod runs as. It
	// must be the one of the serviceAccount volume, if there is one. Default: the
	// account of that volume, or the namespace's default without its token.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// EvictionStrategy says what happens when a VMI's pod is to be evicted.
//
// +podvisor:enum
type EvictionStrategy string

// The eviction strategies.
const (
	EvictionNone                  EvictionStrategy = "None"
	EvictionLiveMigrate           EvictionStrategy = "LiveMigrate"
	EvictionLiveMigrateIfPossible EvictionStrategy = "LiveMigrateIfPossible"
	EvictionExternal              EvictionStrategy = "External"
)

// StartStrategy says how a VMI starts.
//
// +podvisor:enum
type StartStrategy string

// StartPaused starts a guest with its processors stopped.
const StartPaused StartStrategy = "Paused"

// StartsPaused reports whether the guest is started with its processors stopped. They
// stay so until the first unpause.
func (s *VirtualMachineInstanceSpec) StartsPaused() bool {
	return s.StartStrategy != nil && *s.StartStrategy == StartPaused
}

// Times of a spec.
const (
	// DefaultGracePeriod is the time that a guest has to power off when its spec
	// does not say.
	DefaultGracePeriod = 30 * time.Second
	// MostSeconds is the longest time that a spec gives in seconds: a year.
	MostSeconds = 365 * 24 * 60 * 60
)

// GracePeriod is the time that the guest has to power off after it was asked to: the spec's,
// or [DefaultGracePeriod]. One that is stored and longer than [MostSeconds] is that long.
func (v *VirtualMachineInstance) GracePeriod() time.Duration {
	if s := v.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(min(*s, MostSeconds)) * time.Second
	}
	return DefaultGracePeriod
}

// maxHostname is the longest host name, of a pod and of Linux.
const maxHostname = 63

// Hostname is the host name of the guest and of its pod: the spec's, or else the
// VMI's name up to its first dot, cut to 63 characters. A name may have dots and
// be longer, a host name not.
func (v *VirtualMachineInstance) Hostname() string {
	h, _, _ := strings.Cut(cmp.Or(v.Spec.Hostname, v.Name), ".")
	if len(h) > maxHostname {
		h = h[:maxHostname]
	}
	return strings.TrimRight(h, "-")
}
