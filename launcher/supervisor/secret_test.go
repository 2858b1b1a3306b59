package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const private = "correct-horse-battery-staple"

// withSecrets is the VMI of the tests with Secrets in all volumes that have one, and
// the folder with them as the kubelet mounts them.
func withSecrets(t *testing.T) (v *vmi.VirtualMachineInstance, files string) {
	t.Helper()
	files = t.TempDir()
	require.NoError(t, os.Chmod(files, 0o755))
	for _, name := range []string{
		"kubevirt/secrets/seed/user/userdata", "kubevirt/secrets/seed/network/networkdata",
		"kubevirt-private/secret/keys/password", "kubevirt-private/service-account/token/token", "kubevirt-private/sysprep/answers/unattend.xml",
		"kubevirt/secrets/passwords/credentials/bob", "kubevirt/secrets/no-keys/credentials/keys",
	} {
		p := filepath.Join(files, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(private), 0o440))
	}
	v = instance()
	ref := &corev1.LocalObjectReference{Name: "s"}
	v.Spec.Volumes[1].CloudInitNoCloud = &vmi.CloudInitNoCloud{UserDataSecretRef: ref, NetworkDataSecretRef: ref}
	v.Spec.AccessCredentials = []vmi.AccessCredential{
		{UserPassword: &vmi.UserPasswordCredential{
			Source:            vmi.UserPasswordSource{Secret: &vmi.CredentialSecret{SecretName: "passwords"}},
			PropagationMethod: vmi.UserPasswordPropagationMethod{QemuGuestAgent: &vmi.AgentPropagation{}},
		}},
		{SSHPublicKey: &vmi.SSHPublicKeyCredential{ // a password where keys belong
			Source:            vmi.SSHPublicKeySource{Secret: &vmi.CredentialSecret{SecretName: "no-keys"}},
			PropagationMethod: vmi.SSHPublicKeyPropagationMethod{QemuGuestAgent: &vmi.AgentUsersPropagation{Users: []string{"bob"}}},
		}},
	}
	for name, source := range map[string]vmi.VolumeSource{
		"keys":    {Secret: &vmi.SecretVolume{SecretName: "s"}},
		"token":   {ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "robot"}},
		"answers": {Sysprep: &vmi.Sysprep{Secret: ref}},
	} {
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: name, VolumeSource: source})
		v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: name, Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}})
	}
	return v, files
}

func TestAttackSecretsReachNothingButTheGuest(t *testing.T) {
	t.Parallel()
	v, files := withSecrets(t)
	p := newPod(t, bootable(), "FILES="+files)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)

	s, err := p.client.State(t.Context())
	require.NoError(t, err)
	state, err := json.Marshal(s)
	require.NoError(t, err)
	said := map[string]string{"the log": p.log.String(), "the console": p.console.String(), "the state": string(state)}
	for _, pid := range children(p.launcher) {
		for _, what := range []string{"cmdline", "environ"} {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, what))
			said[fmt.Sprintf("%s of %d", what, pid)] = string(text)
		}
	}
	for what, text := range said {
		require.NotContains(t, text, private, what)
	}
	require.Equal(t, map[string]bool{
		"kubevirt-ephemeral-disks/cloud-init-data/default/vm/noCloud.iso": true,
		"kubevirt-ephemeral-disks/files/keys.iso":                         true,
		"kubevirt-ephemeral-disks/files/token.iso":                        true,
		"kubevirt-ephemeral-disks/files/answers.iso":                      true,
	}, p.holding(private), "files beside the kubelet's, and whether they are their owner's alone")
}

// holding are the files in the launcher's /run that hold words, but those that the
// kubelet mounted, and whether no other user can read them.
func (p *pod) holding(words string) map[string]bool {
	p.Helper()
	root, out := p.path(""), map[string]bool{}
	require.NoError(p, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root)
		switch {
		case os.IsNotExist(err):
			return nil
		case err != nil:
			return err
		case d.IsDir() && (name == "kubevirt/secrets" || strings.HasPrefix(name, "kubevirt-private/se") || name == "kubevirt-private/sysprep"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		switch {
		case os.IsNotExist(err):
			return nil
		case err != nil:
			return err
		}
		if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, []byte(words)) {
			out[name] = info.Mode().Perm()&0o077 == 0
		}
		return nil
	}))
	return out
}
