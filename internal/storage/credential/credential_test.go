package credential_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/storage/credential"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// key is an SSH public key that is like no other with another comment.
func key(comment string) string {
	const of = "ssh-ed25519"
	blob := append(binary.BigEndian.AppendUint32(nil, uint32(len(of))), of...)
	blob = append(binary.BigEndian.AppendUint32(blob, 32), make([]byte, 32)...)
	return of + " " + base64.StdEncoding.EncodeToString(blob) + " " + comment
}

func from(secret string) *vmi.CredentialSecret { return &vmi.CredentialSecret{SecretName: secret} }

// keys is a credential with SSH keys in the Secret, by the method.
func keys(secret string, m vmi.SSHPublicKeyPropagationMethod) vmi.AccessCredential {
	return vmi.AccessCredential{SSHPublicKey: &vmi.SSHPublicKeyCredential{Source: vmi.SSHPublicKeySource{Secret: from(secret)}, PropagationMethod: m}}
}

// forUsers is a credential with SSH keys in the Secret, for users.
func forUsers(secret string, users ...string) vmi.AccessCredential {
	return keys(secret, vmi.SSHPublicKeyPropagationMethod{QemuGuestAgent: &vmi.AgentUsersPropagation{Users: users}})
}

// passwords is a credential with passwords in the Secret.
func passwords(secret string) vmi.AccessCredential {
	return vmi.AccessCredential{UserPassword: &vmi.UserPasswordCredential{
		Source: vmi.UserPasswordSource{Secret: from(secret)}, PropagationMethod: vmi.UserPasswordPropagationMethod{QemuGuestAgent: &vmi.AgentPropagation{}},
	}}
}

func with(all ...vmi.AccessCredential) *vmi.VirtualMachineInstance {
	return &vmi.VirtualMachineInstance{Spec: vmi.VirtualMachineInstanceSpec{AccessCredentials: all}}
}

// in is a Secret with keys and values in turns.
func in(values ...string) map[string][]byte {
	m := map[string][]byte{}
	for i := 0; i < len(values); i += 2 {
		m[values[i]] = []byte(values[i+1])
	}
	return m
}

func TestTheSeedHasTheKeysOfAllSecrets(t *testing.T) {
	t.Parallel()
	cloud := vmi.SSHPublicKeyPropagationMethod{NoCloud: &vmi.CloudInitPropagation{}}
	drive := vmi.SSHPublicKeyPropagationMethod{ConfigDrive: &vmi.CloudInitPropagation{}}
	all := credential.Contents{
		"one": in("b", key("b")+"\n", "a", "# of the team\n\n"+key("a")+"\r\n"+key("c")),
		"two": in("x", "from=\"192.0.2.0/24, 198.51.100.1\",no-pty "+key("x")+"\n"+key("a")),
	}
	for name, tt := range map[string]struct {
		credentials []vmi.AccessCredential
		want        volume.Keys
	}{
		"none":             {nil, volume.Keys{}},
		"one Secret":       {[]vmi.AccessCredential{keys("one", cloud)}, volume.Keys{NoCloud: []string{key("a"), key("b"), key("c")}}},
		"each by its way":  {[]vmi.AccessCredential{keys("one", cloud), keys("two", drive), forUsers("one", "bob")}, volume.Keys{NoCloud: []string{key("a"), key("b"), key("c")}, ConfigDrive: []string{"from=\"192.0.2.0/24, 198.51.100.1\",no-pty " + key("x"), key("a")}}},
		"two Secrets":      {[]vmi.AccessCredential{keys("two", cloud), keys("one", cloud)}, volume.Keys{NoCloud: []string{"from=\"192.0.2.0/24, 198.51.100.1\",no-pty " + key("x"), key("a"), key("b"), key("c")}}},
		"a Secret unread":  {[]vmi.AccessCredential{keys("three", cloud)}, volume.Keys{}},
		"passwords are no": {[]vmi.AccessCredential{passwords("one")}, volume.Keys{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := credential.Seed(with(tt.credentials...), all)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	odd := credential.Contents{"odd": in("k", key("a")+"\nssh-rsa not-base64 me\n")}
	got, err := credential.Seed(with(keys("odd", cloud)), odd)
	require.NoError(t, err)
	require.Equal(t, volume.Keys{NoCloud: []string{key("a"), "ssh-rsa not-base64 me"}}, got, "as it is given")
	require.Equal(t, []string{`secret "odd": key k, line 2 is no SSH public key and is passed on as it is`}, credential.Doubts(with(keys("odd", cloud), forUsers("odd", "bob")), odd))
	_, err = credential.Seed(with(keys("bad", cloud)), credential.Contents{"bad": in("k", key("a")+"\nhunter2\x00\n")})
	require.EqualError(t, err, `secret "bad": key k, line 2 has control characters or is not UTF-8`)
	require.NotErrorIs(t, err, vmi.ErrInvalid, "the Secret may be corrected")
}

func TestAKeyThatIsNotWellFormedIsPassedOn(t *testing.T) {
	t.Parallel()
	for line, wellFormed := range map[string]bool{
		key("a"): true, "no-pty " + key("a"): true,
		"ssh-ed25519": false, "ssh-ed25519 AAAA": false, strings.Replace(key("a"), "ssh", "sch", 1): false, "ssh-rsa AAAA\tme": false,
	} {
		v, contents := with(forUsers("s", "bob")), credential.Contents{"s": in("k", line)}
		access, faults := credential.ByAgent(v, contents)
		require.Empty(t, faults)
		require.Equal(t, []credential.UserKeys{{User: "bob", Keys: []string{line}}}, access.Keys)
		doubts := credential.Doubts(v, contents)
		if wellFormed {
			require.Empty(t, doubts)
			continue
		}
		require.Equal(t, []string{`secret "s": key k, line 1 is no SSH public key and is passed on as it is`}, doubts)
	}
	require.Len(t, credential.Doubts(with(forUsers("s", "bob")), credential.Contents{"s": in("k", strings.Repeat("x\n", 1000))}), 5)
}

func TestWhatWouldBreakTheFileOfKeysIsAFault(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		key("a\x1b[2J"): "has control characters",
		key("\xff"):     "is not UTF-8",
		key(strings.Repeat("x", credential.MaxKey)): fmt.Sprintf("has %d bytes, and a key has at most 8192", len(key(strings.Repeat("x", credential.MaxKey)))),
	} {
		access, faults := credential.ByAgent(with(forUsers("s", "bob")), credential.Contents{"s": in("k", line+"\n"+key("good"))})
		require.Equal(t, []credential.UserKeys{{User: "bob", Keys: []string{key("good")}}}, access.Keys)
		require.Len(t, faults, 1)
		require.Contains(t, faults[0], want)
		require.NotContains(t, faults[0], "AAAA")
	}
}

func TestAttackASecretOfWrongLinesHasFewFaults(t *testing.T) {
	t.Parallel()
	_, faults := credential.ByAgent(with(forUsers("s", "bob")), credential.Contents{"s": in("k", strings.Repeat("x\x00\n", 100_000))})
	require.Len(t, faults, 5)
}

func TestTheAgentWritesTheKeysOfEachUser(t *testing.T) {
	t.Parallel()
	v := with(forUsers("one", "eve", "bob"), forUsers("two", "bob"), forUsers("empty", "tom"))
	access, faults := credential.ByAgent(v, credential.Contents{"one": in("k", key("1")), "two": in("k", key("2")+"\n"+key("1")), "empty": {}})
	require.Empty(t, faults)
	require.Equal(t, credential.Access{Keys: []credential.UserKeys{{"bob", []string{key("1"), key("2")}}, {"eve", []string{key("1")}}, {"tom", nil}}}, access)

	access, faults = credential.ByAgent(v, credential.Contents{"one": in("k", key("1")), "empty": {}})
	require.Equal(t, []string{`secret "two" cannot be read`}, faults)
	require.Empty(t, access.Keys, "a part of a user's keys is not what is desired")
}

func TestTheAgentSetsPasswords(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x", credential.MaxPassword)
	for name, tt := range map[string]struct {
		credentials []vmi.AccessCredential
		contents    credential.Contents
		want        []credential.Password
		faults      []string
	}{
		"sorted, without the end of the line": {[]vmi.AccessCredential{passwords("b"), passwords("a")},
			credential.Contents{"a": in("root", "r\n"), "b": in("bob", "b b\r\n", "alice", longest)},
			[]credential.Password{{"alice", longest}, {"bob", "b b"}, {"root", "r"}}, nil},
		"the same Secret twice": {[]vmi.AccessCredential{passwords("a"), passwords("a")}, credential.Contents{"a": in("root", "r")}, []credential.Password{{"root", "r"}}, nil},
		"two for one user": {[]vmi.AccessCredential{passwords("a"), passwords("b")}, credential.Contents{"a": in("root", "r"), "b": in("root", "s", "bob", "b")},
			[]credential.Password{{"bob", "b"}}, []string{`the password of user root is in secret "a" and in secret "b": remove it from one of them`}},
		"not read":      {[]vmi.AccessCredential{passwords("a")}, nil, nil, []string{`secret "a" cannot be read`}},
		"empty":         {[]vmi.AccessCredential{passwords("a")}, credential.Contents{"a": in("root", "\n")}, nil, []string{`secret "a": key root is empty: a user cannot have an empty password`}},
		"too long":      {[]vmi.AccessCredential{passwords("a")}, credential.Contents{"a": in("root", longest+"x")}, nil, []string{`secret "a": key root has 512 bytes, and a password has at most 511`}},
		"an odd user":   {[]vmi.AccessCredential{passwords("a")}, credential.Contents{"a": in("-root", "x")}, nil, []string{`secret "a": key -root cannot be the name of a user of the guest`}},
		"no credential": {nil, credential.Contents{"a": in("root", "r")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, faults := credential.ByAgent(with(tt.credentials...), tt.contents)
			require.Equal(t, tt.want, access.Passwords)
			require.Equal(t, tt.faults, faults)
		})
	}
}

// chpasswd reads lines of a user, a colon and a password.
func TestAttackAPasswordIsNoLineOfAnotherUser(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"x\nroot:y", "x\rroot:y", "x\x00y"} {
		access, faults := credential.ByAgent(with(passwords("a")), credential.Contents{"a": in("bob", password)})
		require.Empty(t, access.Passwords)
		require.Equal(t, []string{`secret "a": key bob has control characters, which a password cannot have`}, faults)
	}
}

func TestAttackManyUsersAndKeysAreRefused(t *testing.T) {
	t.Parallel()
	var users []string
	many, lines := map[string][]byte{}, ""
	for i := range credential.MaxUsers + 1 {
		users = append(users, fmt.Sprintf("u%d", i))
		many[users[i]] = []byte("x")
		lines += key(users[i]) + "\n"
	}
	contents := credential.Contents{"one": in("k", key("1")), "many": many, "keys": in("k", lines)}
	access, faults := credential.ByAgent(with(forUsers("one", users...), passwords("many")), contents)
	require.Equal(t, credential.Access{}, access)
	require.Equal(t, []string{"the access credentials name 257 users for SSH public keys, and keys of at most 256 are written",
		"the access credentials have passwords of 257 users, and those of at most 256 are set"}, faults)

	access, faults = credential.ByAgent(with(forUsers("keys", "bob")), contents)
	require.Equal(t, credential.Access{}, access)
	require.Equal(t, []string{"user bob has 257 SSH public keys, and at most 256 are written"}, faults)
	_, err := credential.Seed(with(keys("keys", vmi.SSHPublicKeyPropagationMethod{NoCloud: &vmi.CloudInitPropagation{}})), contents)
	require.EqualError(t, err, "the access credentials have 257 SSH public keys for cloud-init, and at most 256 are installed")
}

func TestThePodMountsEachSecretOnce(t *testing.T) {
	t.Parallel()
	p := credential.Part(with(forUsers("b.x", "bob"), passwords("a"), forUsers("b.x", "eve")))
	require.Equal(t, []corev1.VolumeMount{
		{Name: "access-credentials-0", MountPath: "/var/run/kubevirt/secrets/a/credentials", ReadOnly: true},
		{Name: "access-credentials-1", MountPath: "/var/run/kubevirt/secrets/b.x/credentials", ReadOnly: true},
	}, p.Mounts)
	require.Len(t, p.Volumes, 2)
	require.Equal(t, &corev1.SecretVolumeSource{SecretName: "b.x", DefaultMode: new(int32(0o440))}, p.Volumes[1].Secret)
}

func TestAttackAPasswordIsNotInTheTextOfItsValue(t *testing.T) {
	t.Parallel()
	p := credential.Password{User: "bob", Password: "hunter2"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(format, credential.Access{Passwords: []credential.Password{p}}), "hunter2", format)
	}
}

func TestOnlyCredentialsForTheAgentUseIt(t *testing.T) {
	t.Parallel()
	require.True(t, credential.UsesAgent(with(passwords("a"))))
	require.True(t, credential.UsesAgent(with(forUsers("a", "bob"))))
	require.False(t, credential.UsesAgent(with(keys("a", vmi.SSHPublicKeyPropagationMethod{NoCloud: &vmi.CloudInitPropagation{}}))))
}

func FuzzByAgent(f *testing.F) {
	f.Add("bob", []byte(key("a")), "hunter2")
	f.Add("b\nb", []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"), "a\nroot:b")
	f.Fuzz(func(t *testing.T, user string, lines []byte, password string) {
		v := with(forUsers("k", user), passwords("p"))
		access, faults := credential.ByAgent(v, credential.Contents{"k": {"x": lines}, "p": {user: []byte(password)}})
		for _, k := range access.Keys {
			require.True(t, vmi.IsGuestUser(k.User))
			for _, line := range k.Keys {
				require.NotContains(t, line, "\n")
				require.LessOrEqual(t, len(line), credential.MaxKey)
			}
		}
		for _, p := range access.Passwords {
			require.True(t, vmi.IsGuestUser(p.User))
			require.NotContains(t, p.Password, "\n")
		}
		for _, why := range faults {
			require.Less(t, len(why), 300+5*len(user))
		}
	})
}

func ExampleByAgent() {
	access, faults := credential.ByAgent(with(forUsers("team", "admin"), passwords("login")), credential.Contents{
		"team":  in("alice", key("alice@example.com"), "bob", "not a\x00 key"),
		"login": in("admin", "correct horse\n"),
	})
	fmt.Println(len(access.Keys[0].Keys), "key of", access.Keys[0].User)
	fmt.Println(access.Passwords)
	fmt.Println(faults)
	// Output:
	// 1 key of admin
	// [password of user admin]
	// [secret "team": key bob, line 1 has control characters or is not UTF-8]
}
