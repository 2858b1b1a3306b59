package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/storage/credential"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// given is what a test's Secrets have and what its agent got.
type given struct {
	password string
	faults   []string
	fails    string // of the agent
	writes   []string
}

func (g *given) credentials() *credentials {
	return &credentials{
		read: func() (credential.Access, []string, bool) {
			return credential.Access{Passwords: []credential.Password{{User: "bob", Password: g.password}}}, g.faults, g.password != ""
		},
		write: func(_ context.Context, a credential.Access) []string {
			g.writes = append(g.writes, a.Passwords[0].Password)
			if g.fails != "" {
				return []string{g.fails}
			}
			return nil
		},
	}
}

var written = &protocol.Credentials{}

func TestCredentialsAreWrittenWhenTheyAreNew(t *testing.T) {
	t.Parallel()
	g := &given{password: "a"}
	c := g.credentials()
	require.Nil(t, c.sync(t.Context(), false, false), "there was no agent yet")
	require.Equal(t, written, c.sync(t.Context(), true, true))
	require.Equal(t, written, c.sync(t.Context(), true, false))
	require.Equal(t, []string{"a"}, g.writes, "what is written already is not written again")

	g.password = "b"
	require.Equal(t, written, c.sync(t.Context(), true, false))
	require.Equal(t, written, c.sync(t.Context(), true, true), "another boot, or another agent")
	require.Equal(t, []string{"a", "b", "b"}, g.writes)
	require.Equal(t, written, c.sync(t.Context(), false, false))

	g.password = "c"
	require.Contains(t, c.sync(t.Context(), false, false).Failure, "the change is written when its agent connects")
	require.Equal(t, []string{"a", "b", "b"}, g.writes)
	require.Equal(t, written, c.sync(t.Context(), true, true))
	require.Equal(t, []string{"a", "b", "b", "c"}, g.writes)

	g.password = ""
	require.Nil(t, c.sync(t.Context(), true, true), "nothing is for the agent")
}

func TestAFailureIsTriedAgainAndReportedWhenItStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &given{password: "a", fails: "no such user"}
		c := g.credentials()
		require.Nil(t, c.sync(t.Context(), true, true), "cloud-init may not have created the user yet")
		var reported time.Duration
		began := time.Now()
		for range 60 * 6 {
			time.Sleep(10 * time.Second)
			if now := c.sync(t.Context(), true, false); now != nil && reported == 0 {
				require.Equal(t, &protocol.Credentials{Failure: "no such user"}, now)
				reported = time.Since(began)
			}
		}
		require.Equal(t, credentialsSettle, reported)
		require.InDelta(t, 62, len(g.writes), 2, "in an hour, later every minute")

		g.fails = ""
		time.Sleep(credentialsLatest)
		require.Equal(t, written, c.sync(t.Context(), true, false))
	})
}

func TestAFaultOfASecretIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	g := &given{password: "a", faults: []string{"1", "2", "3", "4", "5", "6"}, fails: "refused"}
	c := g.credentials()
	require.Equal(t, &protocol.Credentials{Failure: "1; 2; 3; 4; 5; 2 more"}, c.sync(t.Context(), true, true))
	g.faults, g.fails = nil, ""
	require.Equal(t, written, c.sync(t.Context(), true, false), "the Secret was corrected")
}

// agentOf is an agent that answers for each user what is listed.
type agentOf struct {
	answers map[string]error
	asked   []string
}

func (a *agentOf) SetAuthorizedKeys(_ context.Context, _, user string, keys []string) error {
	a.asked = append(a.asked, fmt.Sprintf("%d keys of %s", len(keys), user))
	return a.answers[user]
}

func (a *agentOf) SetPassword(_ context.Context, _, user, _ string) error {
	a.asked = append(a.asked, "password of "+user)
	return a.answers[user]
}

func TestEachUserThatIsUnknownIsReported(t *testing.T) {
	t.Parallel()
	access := credential.Access{
		Keys:      []credential.UserKeys{{User: "alice"}, {User: "bob", Keys: []string{"k"}}},
		Passwords: []credential.Password{{User: "bob", Password: "hunter2"}, {User: "eve", Password: "hunter3"}},
	}
	refused := &libvirt.Error{Err: libvirt.ErrAgentRefused}
	a := &agentOf{answers: map[string]error{"bob": refused}}
	require.Equal(t, []string{
		"the guest's agent cannot set the SSH public keys of user bob: the guest has no such user, or its agent does not permit guest-ssh-add-authorized-keys",
		"the guest's agent cannot set the password of user bob: the guest has no such user, or its agent does not permit guest-set-user-password",
	}, writeAccess(t.Context(), a, "d", access))
	require.Equal(t, []string{"0 keys of alice", "1 keys of bob", "password of bob", "password of eve"}, a.asked)

	a = &agentOf{answers: map[string]error{"alice": errors.New("hunter2")}}
	require.Equal(t, []string{"the guest's agent does not answer to set the SSH public keys of user alice"}, writeAccess(t.Context(), a, "d", access))
	require.Len(t, a.asked, 1, "an agent that does not answer is not asked for the others")
}

func TestTheSecretsOfAPodAreRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	v := &vmi.VirtualMachineInstance{}
	v.Spec.AccessCredentials = []vmi.AccessCredential{{SSHPublicKey: &vmi.SSHPublicKeyCredential{
		Source:            vmi.SSHPublicKeySource{Secret: &vmi.CredentialSecret{SecretName: "team"}},
		PropagationMethod: vmi.SSHPublicKeyPropagationMethod{NoCloud: &vmi.CloudInitPropagation{}},
	}}}
	contents, err := readSecrets(v, root)
	require.NoError(t, err)
	require.Empty(t, contents)

	version := filepath.Join(credential.Dir(root, "team"), "..1")
	require.NoError(t, os.MkdirAll(version, 0o755))
	require.NoError(t, os.Symlink("..1", filepath.Join(filepath.Dir(version), "..data")))
	require.NoError(t, os.WriteFile(filepath.Join(version, "k"), []byte("private "+strings.Repeat("x", 10)+"\x00"), 0o600))
	_, err = seedKeys(v, root)
	require.EqualError(t, err, `read the SSH public keys for cloud-init: secret "team": key k, line 1 has control characters or is not UTF-8`)
}
