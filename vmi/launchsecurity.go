package vmi

// LaunchSecurity keeps the guest's memory and processors from the node that it runs on.
// On amd64 exactly one field is set; on s390x none is.
type LaunchSecurity struct {
	// SEV encrypts the guest's memory with a key that only the processor of the node
	// knows: AMD's Secure Encrypted Virtualization. It needs the firmware efi with
	// secureBoot: false, which does not keep its variables, and the feature gate
	// WorkloadEncryptionSEV.
	// +optional
	SEV *SEV `json:"sev,omitempty"`

	// SNP is SEV with pages that the node cannot exchange either.
	// +optional
	// +podvisor:unserved=the firmware that it needs, OVMF for SEV-SNP, is in no package of Debian 13
	SNP *SEVSNP `json:"snp,omitempty"`

	// TDX is Intel's Trust Domain Extensions.
	// +optional
	// +podvisor:unserved=QEMU 10.0 of the launcher does not have it
	TDX *TDX `json:"tdx,omitempty"`
}

// SEV encrypts the guest's memory.
type SEV struct {
	// Policy is what the processor allows the node.
	// +optional
	Policy *SEVPolicy `json:"policy,omitempty"`

	// Attestation lets the guest's owner see what was started before the guest runs.
	// +optional
	// +podvisor:unserved=there are no calls that set up the session, show the measurement and inject the secret
	Attestation *SEVAttestation `json:"attestation,omitempty"`

	// Session is the session that the guest's owner has prepared for the node's
	// processor, in Base64.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Session string `json:"session,omitempty"`

	// DHCert is the guest's owner's certificate for the exchange of keys with the
	// node's processor, in Base64.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	DHCert string `json:"dhCert,omitempty"`
}

// SEVPolicy is what the processor allows the node. Nothing on the node can debug the
// guest in any case.
type SEVPolicy struct {
	// EncryptedState encrypts the registers of the guest's processors too: SEV-ES.
	// Default: false.
	// +optional
	EncryptedState *bool `json:"encryptedState,omitempty"`
}

// SEVAttestation lets the guest's owner see what was started.
type SEVAttestation struct{}

// SEVSNP is SEV with pages that the node cannot exchange.
type SEVSNP struct{}

// TDX is Intel's Trust Domain Extensions.
type TDX struct{}

// EncryptsMemory says whether the guest's memory is encrypted by SEV.
func (l *LaunchSecurity) EncryptsMemory() bool { return l != nil && l.SEV != nil }

// EncryptsState says whether the registers of the guest's processors are encrypted too.
func (l *LaunchSecurity) EncryptsState() bool {
	return l.EncryptsMemory() && l.SEV.Policy != nil && l.SEV.Policy.EncryptedState != nil && *l.SEV.Policy.EncryptedState
}
