package vmi

import "regexp"

// AccessCredential is a key or a password that is put into the guest: exactly
// one field is set.
//
// +podvisor:exactlyOne:of=sshPublicKey;userPassword,message="an access credential is exactly one of"
type AccessCredential struct {
	// SSHPublicKey puts SSH public keys into the guest.
	// +optional
	SSHPublicKey *SSHPublicKeyCredential `json:"sshPublicKey,omitempty"`

	// UserPassword sets passwords of users of the guest.
	// +optional
	UserPassword *UserPasswordCredential `json:"userPassword,omitempty"`
}

// SSHPublicKeyCredential is a set of SSH public keys.
type SSHPublicKeyCredential struct {
	// Source is where the keys are.
	Source SSHPublicKeySource `json:"source"`

	// PropagationMethod is how they reach the guest.
	PropagationMethod SSHPublicKeyPropagationMethod `json:"propagationMethod"`
}

// SSHPublicKeySource is where SSH public keys are: its one field must be set.
type SSHPublicKeySource struct {
	// Secret holds one key or several in each of its values.
	// +optional
	Secret *CredentialSecret `json:"secret,omitempty"`
}

// CredentialSecret is a Secret of the VMI's namespace.
type CredentialSecret struct {
	// SecretName is the name of the Secret. The VMI does not start until it exists.
	SecretName string `json:"secretName"`
}

// SSHPublicKeyPropagationMethod is how keys reach the guest: exactly one field
// is set.
//
// +podvisor:exactlyOne:of=configDrive;noCloud;qemuGuestAgent,message="a propagation method is exactly one of"
type SSHPublicKeyPropagationMethod struct {
	// ConfigDrive puts the keys into the VMI's cloudInitConfigDrive volume, once,
	// at the first start.
	// +optional
	ConfigDrive *CloudInitPropagation `json:"configDrive,omitempty"`

	// NoCloud puts the keys into the VMI's cloudInitNoCloud volume, once, at the
	// first start.
	// +optional
	NoCloud *CloudInitPropagation `json:"noCloud,omitempty"`

	// QemuGuestAgent writes the keys by the guest's agent, and again whenever the
	// Secret changes.
	// +optional
	QemuGuestAgent *AgentUsersPropagation `json:"qemuGuestAgent,omitempty"`
}

// CloudInitPropagation has no settings.
type CloudInitPropagation struct{}

// AgentUsersPropagation writes keys by the guest's agent.
type AgentUsersPropagation struct {
	// Users are the users of the guest whose authorized_keys the keys are
	// written to, in place of what is there. At least one.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Users []string `json:"users"`
}

// UserPasswordCredential is a set of passwords.
type UserPasswordCredential struct {
	// Source is where the passwords are.
	Source UserPasswordSource `json:"source"`

	// PropagationMethod is how they reach the guest.
	PropagationMethod UserPasswordPropagationMethod `json:"propagationMethod"`
}

// UserPasswordSource is where passwords are: its one field must be set.
type UserPasswordSource struct {
	// Secret maps the names of users to their passwords.
	// +optional
	Secret *CredentialSecret `json:"secret,omitempty"`
}

// UserPasswordPropagationMethod is how passwords reach the guest: its one field
// must be set.
type UserPasswordPropagationMethod struct {
	// QemuGuestAgent sets the passwords by the guest's agent, and again whenever
	// the Secret changes.
	// +optional
	QemuGuestAgent *AgentPropagation `json:"qemuGuestAgent,omitempty"`
}

// AgentPropagation has no settings.
type AgentPropagation struct{}

// guestUser matches names of users of Linux, and of Windows with their domain.
var guestUser = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@\\ $-]{0,103}$`)

// IsGuestUser says that the name can be that of a user of a guest, whose agent gets
// it: it has at most 104 letters, digits and characters of "._@\\ $-", and begins with
// a letter, a digit or "_".
func IsGuestUser(name string) bool { return guestUser.MatchString(name) }
