package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Names of the API of verbs.
const (
	// SubresourceGroup is the API group of the verbs of VMs and VMIs: starting and
	// stopping, consoles and what the guest's agent says. Its versions are v1 and
	// v1alpha3, with the same verbs.
	SubresourceGroup = "subresources.kubevirt.io"
	// StreamProtocol is the websocket subprotocol of streams: raw bytes in binary
	// messages.
	StreamProtocol = "plain.kubevirt.io"
)

// The bodies of verbs. DryRun is empty or ["All"]: then all is checked and nothing done.

// StartOptions say how a VM is started.
type StartOptions struct {
	metav1.TypeMeta `json:",inline"`
	// Paused starts it with a guest that is paused until it is unpaused.
	Paused bool `json:"paused,omitempty"`
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// StopOptions say how a VM is stopped.
type StopOptions struct {
	metav1.TypeMeta `json:",inline"`
	// GracePeriod is how long the guest may take to end, in seconds. Nil: what its VMI says.
	GracePeriod *int64 `json:"gracePeriod,omitempty"`
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// RestartOptions say how a VM is restarted.
type RestartOptions struct {
	metav1.TypeMeta `json:",inline"`
	// GracePeriodSeconds is 0, which ends the guest at once, or nil: what its VMI says.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// PauseOptions say how a VMI is paused.
type PauseOptions struct {
	metav1.TypeMeta `json:",inline"`
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// UnpauseOptions say how a VMI is unpaused.
type UnpauseOptions struct {
	metav1.TypeMeta `json:",inline"`
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// MigrateOptions say how a VM is migrated.
type MigrateOptions struct {
	metav1.TypeMeta `json:",inline"`
	// AddedNodeSelector are labels that the target node must have, beside those that the
	// VMI asks for.
	AddedNodeSelector map[string]string `json:"addedNodeSelector,omitempty"`
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// EvacuateCancelOptions name the node whose evacuation is cancelled.
type EvacuateCancelOptions struct {
	metav1.TypeMeta    `json:",inline"`
	EvacuationNodeName string `json:"evacuationNodeName,omitempty"`
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// FreezeUnfreezeTimeout says how long the file systems of a guest stay frozen.
type FreezeUnfreezeTimeout struct {
	// UnfreezeTimeout is when they are thawed if they are not by then. 0: never.
	UnfreezeTimeout *metav1.Duration `json:"unfreezeTimeout"`
}

// VirtualMachineInstanceGuestAgentInfo is what a guest's agent says about the guest. The
// guest decides about all of it.
type VirtualMachineInstanceGuestAgentInfo struct {
	metav1.TypeMeta   `json:",inline"`
	GuestAgentVersion string `json:"guestAgentVersion,omitempty"`
	// +listType=atomic
	SupportedCommands []GuestAgentCommandInfo `json:"supportedCommands,omitempty"`
	Hostname          string                  `json:"hostname,omitempty"`
	OS                GuestOSInfo             `json:"os,omitempty"`
	// Timezone is the name of the time zone and its offset in seconds, as "UTC, 0".
	Timezone string `json:"timezone,omitempty"`
	// UserList has 10 users at most; the verb userlist has all.
	// +listType=atomic
	UserList []VirtualMachineInstanceGuestOSUser `json:"userList,omitempty"`
	// FSInfo has 10 file systems at most; the verb filesystemlist has all.
	FSInfo VirtualMachineInstanceFileSystemInfo `json:"fsInfo,omitempty"`
	// FSFreezeStatus is "frozen" or empty.
	FSFreezeStatus string `json:"fsFreezeStatus,omitempty"`
}

// GuestAgentCommandInfo is a command of a guest's agent.
type GuestAgentCommandInfo struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled,omitempty"`
}

// VirtualMachineInstanceGuestOSUser is a user that is logged in.
type VirtualMachineInstanceGuestOSUser struct {
	UserName string `json:"userName"`
	Domain   string `json:"domain,omitempty"`
	// LoginTime is in seconds since 1970, with a fraction.
	LoginTime float64 `json:"loginTime,omitempty"`
}

// VirtualMachineInstanceFileSystemInfo are file systems of a guest.
type VirtualMachineInstanceFileSystemInfo struct {
	// +listType=atomic
	Filesystems []VirtualMachineInstanceFileSystem `json:"disks"`
}

// VirtualMachineInstanceFileSystem is a mounted file system of a guest.
type VirtualMachineInstanceFileSystem struct {
	DiskName       string `json:"diskName"`
	MountPoint     string `json:"mountPoint"`
	FileSystemType string `json:"fileSystemType"`
	// UsedBytes and TotalBytes are in bytes.
	UsedBytes  int64 `json:"usedBytes"`
	TotalBytes int64 `json:"totalBytes"`
	// +listType=atomic
	Disk []VirtualMachineInstanceFileSystemDisk `json:"disk,omitempty"`
}

// VirtualMachineInstanceFileSystemDisk is a disk that a file system of a guest is on.
type VirtualMachineInstanceFileSystemDisk struct {
	Serial  string `json:"serial,omitempty"`
	BusType string `json:"busType"`
}

// VirtualMachineInstanceGuestOSUserList are the users that are logged in.
type VirtualMachineInstanceGuestOSUserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineInstanceGuestOSUser `json:"items"`
}

// VirtualMachineInstanceFileSystemList are the mounted file systems of a guest.
type VirtualMachineInstanceFileSystemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineInstanceFileSystem `json:"items"`
}
