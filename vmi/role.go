package vmi

// Role is what a pod is for its VMI. The zero value is the role of the pod that the VMI
// runs in.
type Role string

// The roles.
const (
	// RoleActive: the VMI runs in the pod, or will.
	RoleActive Role = ""
	// RoleTarget: a migration moves the VMI to the pod, which waits for it.
	RoleTarget Role = "Target"
	// RoleAttachment: the pod attaches volumes to the pod that the VMI runs in. There is
	// no launcher in it.
	RoleAttachment Role = "Attachment"
)
