package effect

import (
	"github.com/podvisor/podvisor/internal/storage/credential"
	"github.com/podvisor/podvisor/vmi"
)

// accessArea is of keys and passwords.
var accessArea = exceptions{
	without: map[string]string{
		"spec.accessCredentials[].userPassword.propagationMethod.qemuGuestAgent": "a password has no other method, and must have one",
	},
	alternatives: map[string][]any{
		"spec.accessCredentials[].sshPublicKey.propagationMethod.noCloud":     {map[string]any{}},
		"spec.accessCredentials[].sshPublicKey.propagationMethod.configDrive": {map[string]any{}},
	},
	instead: map[string][]string{
		"spec.accessCredentials[].sshPublicKey.propagationMethod.noCloud":     {"configDrive", "qemuGuestAgent"},
		"spec.accessCredentials[].sshPublicKey.propagationMethod.configDrive": {"noCloud", "qemuGuestAgent"},
	},
}

// agentOf is what the guest's agent writes.
func agentOf(v *vmi.VirtualMachineInstance) (string, error) {
	access, faults := credential.ByAgent(v, secretsOf(v))
	return text([]any{access, faults})
}
