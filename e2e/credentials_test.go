package e2e

import (
	"crypto/ed25519"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// slow is what a Debian may take to boot where everything is emulated and other guests
// boot at the same time.
const slow = 15 * time.Minute

// newKey makes an SSH key, and returns it as it is in authorized_keys too.
func newKey(t *testing.T, comment string) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))) + " " + comment
}

func sshKeys(secret string, m vmi.SSHPublicKeyPropagationMethod) vmi.AccessCredential {
	return vmi.AccessCredential{SSHPublicKey: &vmi.SSHPublicKeyCredential{
		Source: vmi.SSHPublicKeySource{Secret: &vmi.CredentialSecret{SecretName: secret}}, PropagationMethod: m,
	}}
}

func agentKeys(secret string, users ...string) vmi.AccessCredential {
	return sshKeys(secret, vmi.SSHPublicKeyPropagationMethod{QemuGuestAgent: &vmi.AgentUsersPropagation{Users: users}})
}

func agentPasswords(secret string) vmi.AccessCredential {
	return vmi.AccessCredential{UserPassword: &vmi.UserPasswordCredential{
		Source:            vmi.UserPasswordSource{Secret: &vmi.CredentialSecret{SecretName: secret}},
		PropagationMethod: vmi.UserPasswordPropagationMethod{QemuGuestAgent: &vmi.AgentPropagation{}},
	}}
}

// setSecret changes one key of a Secret, and has the kubelet bring it to the VMI's pod
// now, not in a minute.
func (s space) setSecret(v *vmi.VirtualMachineInstance, name, key, content string) {
	s.t.Helper()
	patch := fmt.Sprintf(`{"data": {%q: %q}}`, key, base64.StdEncoding.EncodeToString([]byte(content)))
	_, err := world.kube.CoreV1().Secrets(s.name).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
	s.kubectl("annotate", "--overwrite", "pod", s.pod(v).Name, "e2e/changed="+fmt.Sprint(time.Now().UnixNano()))
}

// awaitCredentials waits until the condition of the credentials is as given.
func (s space) awaitCredentials(name string, limit time.Duration, want corev1.ConditionStatus, message string) {
	s.t.Helper()
	eventually(s.t, limit, func() error {
		c := s.get(name).Status.Condition(vmi.ConditionAccessCredentialsSynchronized)
		if c == nil || c.Status != want || !strings.Contains(c.Message, message) {
			return fmt.Errorf("%s has the credentials %+v", name, c)
		}
		return nil
	})
}

// The user data is inline, the network data in a Secret.
func TestAGuestHasTheKeysAndPasswordsOfItsSecrets(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	_, first := newKey(t, "first")
	_, second := newKey(t, "second")
	_, third := newKey(t, "third")
	s.secret("drive", "key", first)
	s.secret("team", "key", second)
	s.secret("passwords", "bob", "correct horse\n")
	s.secret("networks", "networkdata", `{"links": [{"id": "a", "type": "phy", "ethernet_mac_address": "02:00:00:00:00:07"}],
		"networks": [{"id": "n", "link": "a", "type": "ipv4", "ip_address": "10.0.2.2", "netmask": "255.255.255.0"}]}`)
	v := seeded("credentials", vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{
		NetworkDataSecretRef: reference("networks"),
		UserData: cloudConfig(
			"write_files:",
			"- {path: /etc/passwd, append: true, content: \"bob:x:1000:1000::/home/bob:/bin/sh\\n\"}",
			"- {path: /etc/group, append: true, content: \"bob:x:1000:\\n\"}",
			"- path: /bin/chpasswd", // by which the agent sets passwords, and which busybox does not have
			"  permissions: '0755'",
			`  content: "#!/bin/sh\nIFS=: read -r user password\n/bin/grep -q \"^$user:\" /etc/passwd || exit 1\necho \"password of $user: $(echo $password | /bin/md5sum)\" >>/run/passwords\n"`,
			"- {path: /home/bob/.profile, content: \"\"}",
			"- path: /www/cgi-bin/seen",
			"  permissions: '0755'",
			`  content: "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\ncat /root/.ssh/authorized_keys /home/bob/.ssh/authorized_keys\ncat /run/passwords\n"`,
			"runcmd: [\"chown -R 1000:1000 /home/bob\", \"ip route add default via 10.0.2.1\"]",
		),
	}})
	v.Labels = map[string]string{"app": "credentials"}
	v.Spec.AccessCredentials = []vmi.AccessCredential{
		sshKeys("drive", vmi.SSHPublicKeyPropagationMethod{ConfigDrive: &vmi.CloudInitPropagation{}}),
		agentKeys("team", "bob"), agentPasswords("passwords"),
	}
	s.service("credentials")
	seen := s.newVisitor()
	v = s.create(v)
	s.awaitPhase(v.Name, vmi.PhaseRunning)
	s.awaitCredentials(v.Name, slow, corev1.ConditionTrue, "has written")
	s.awaitEvent(v, vmi.ReasonCredentialsSynchronized)
	s.awaitConsole(v, "eth0 has address 10.0.2.2/24 from network-config")
	page := seen.awaitPage("http://credentials/cgi-bin/seen")
	require.Contains(t, page, first+"\n"+second, "one by cloud-init, one by the agent")
	require.Contains(t, page, fmt.Sprintf("password of bob: %x", md5.Sum([]byte("correct horse\n"))))

	s.setSecret(v, "team", "key", third)
	eventually(t, slow, func() error {
		if page = seen.awaitPage("http://credentials/cgi-bin/seen"); !strings.Contains(page, third) || strings.Contains(page, second) {
			return fmt.Errorf("the guest has the keys of before:\n%s", page)
		}
		return nil
	})
	s.setSecret(v, "passwords", "mallory", "hunter2-hunter2")
	s.awaitCredentials(v.Name, slow, corev1.ConditionFalse, "cannot set the password of user mallory: the guest has no such user")
	s.awaitEvent(v, vmi.ReasonCredentialsFailed)
	for _, log := range []string{s.console(v), s.kubectl("get", "vmi,events", "-o", "yaml")} {
		require.NotContains(t, log, "hunter2-hunter2")
		require.NotContains(t, log, base64.StdEncoding.EncodeToString([]byte("hunter2-hunter2")))
		require.NotContains(t, log, "correct horse")
	}
	s.delete(v.Name)
	s.awaitGone(v)
}

// awaitSSH runs a command in the guest as soon as that succeeds.
func (v visitor) awaitSSH(to *vmi.VirtualMachineInstance, user string, with ssh.AuthMethod, command string) string {
	v.t.Helper()
	return v.awaitLogin(v.space.pod(to).Status.PodIP, user, with, command)
}

// awaitLogin is awaitSSH at an address, or at the name of a Service. It tries rarely: a
// try is work for the guest that is being waited for.
func (v visitor) awaitLogin(host, user string, with ssh.AuthMethod, command string) string {
	v.t.Helper()
	var said string
	eventually(v.t, slow, func() (err error) {
		if said, err = v.login(host, user, with, command); err != nil {
			time.Sleep(5 * time.Second)
		}
		return err
	})
	return said
}

// ssh runs a command in the guest as the user, and returns what it wrote.
func (v visitor) ssh(to *vmi.VirtualMachineInstance, user string, with ssh.AuthMethod, command string) (string, error) {
	v.t.Helper()
	return v.login(v.space.pod(to).Status.PodIP, user, with, command)
}

// login is ssh at an address, or at the name of a Service.
func (v visitor) login(host, user string, with ssh.AuthMethod, command string) (string, error) {
	v.t.Helper()
	conn, err := v.dial(host, "22")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// A guest that hangs is tried again.
	defer time.AfterFunc(long, func() { _ = conn.Close() }).Stop()
	c, channels, requests, err := ssh.NewClientConn(conn, host, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{with}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), // the guest made it a minute ago
	})
	if err != nil {
		return "", err
	}
	defer c.Close()
	session, err := ssh.NewClient(c, channels, requests).NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	out, err := session.CombinedOutput(command)
	return string(out), err
}

// dial connects from the visitor's pod.
func (v visitor) dial(host, port string) (net.Conn, error) {
	here, there := net.Pipe()
	cmd := exec.CommandContext(v.t.Context(), world.kubectl.Path, "--kubeconfig", world.kubectl.Kubeconfig, "-n", v.name,
		"exec", "-i", v.pod, "--", "nc", host, port)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(in, there)
		_ = in.Close()
	}()
	go func() {
		_, _ = io.Copy(there, out)
		_ = there.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	return here, nil
}
