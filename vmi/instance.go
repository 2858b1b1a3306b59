package vmi

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VirtualMachineInstance is one virtual machine, from its start to its end. It
// runs once, in one pod, and does not start again when it has ended.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=vmi;vmis,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.interfaces[0].ipAddress`
// +kubebuilder:printcolumn:name="NodeName",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Live-Migratable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='LiveMigratable')].status`
// +kubebuilder:printcolumn:name="Paused",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Paused')].status`
type VirtualMachineInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the machine that is wanted. It cannot be changed after creation.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a VirtualMachineInstance cannot be changed; delete it and create another"
	Spec VirtualMachineInstanceSpec `json:"spec"`

	// Status is the machine as it is. Only Podvisor writes it.
	// +optional
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

// VirtualMachineInstanceSpec describes a virtual machine: its hardware in
// Domain, what its disks and interfaces are connected to in Volumes and
// Networks, and where it may run.
type VirtualMachineInstanceSpec struct {
	// Domain is the machine's hardware.
	Domain DomainSpec `json:"domain"`

	// Volumes are the sources of the machine's disks. Each is used by the disk
	// of the same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Volumes []Volume `json:"volumes,omitempty"`

	// Networks are what the machine's interfaces are connected to. Each is used
	// by the interface of the same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Networks []Network `json:"networks,omitempty"`

	// TerminationGracePeriodSeconds is how long the guest may take to power off
	// after it was asked to, in seconds. When the time is over, or at once if it
	// is 0, the machine is switched off. Default: 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Hostname is the host name of the pod and the one that the guest is offered
	// by DHCP and cloud-init. Default: the machine's name.
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// Subdomain makes the machine reachable as hostname.subdomain.namespace.svc
	// when a headless Service of that name selects it.
	// +optional
	Subdomain string `json:"subdomain,omitempty"`

	// NodeSelector limits the nodes that the machine may run on to those with
	// all of these labels.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations let the machine run on nodes with matching taints.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// SchedulerName is the scheduler that places the machine's pod. Default: the
	// cluster's default scheduler.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
}

// DefaultGracePeriod is the time that a guest has to power off when its spec
// does not say.
const DefaultGracePeriod = 30 * time.Second

// GracePeriod is the time that the guest has to power off after it was asked
// to: the spec's, or [DefaultGracePeriod].
func (v *VirtualMachineInstance) GracePeriod() time.Duration {
	if s := v.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return DefaultGracePeriod
}

// Hostname is the host name of the machine: the spec's, or the machine's name.
func (v *VirtualMachineInstance) Hostname() string {
	if v.Spec.Hostname != "" {
		return v.Spec.Hostname
	}
	return v.Name
}
