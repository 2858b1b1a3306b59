package credential

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

const (
	// MaxUsers is for how many users of the guest the agent writes keys, and for how
	// many it sets passwords.
	MaxUsers = 256
	// MaxPassword is the longest password in bytes: crypt(3) takes no longer one.
	MaxPassword = 511
)

// Access is what the guest's agent writes. The zero value is nothing.
type Access struct {
	// Keys are the SSH public keys, sorted by their users.
	Keys []UserKeys
	// Passwords are the passwords, sorted by their users.
	Passwords []Password
}

// UserKeys are all SSH public keys of a user of the guest.
type UserKeys struct {
	User string
	// Keys are sorted. None: the user has none any more.
	Keys []string
}

// Password is the password of a user of the guest. As text it is the user's name.
type Password struct{ User, Password string }

// String is the name of the user.
func (p Password) String() string { return "password of user " + p.User }

// GoString is the name of the user.
func (p Password) GoString() string { return p.String() }

// Equal says that the agent writes the same.
func (a Access) Equal(b Access) bool {
	return slices.Equal(a.Passwords, b.Passwords) && slices.EqualFunc(a.Keys, b.Keys, func(k, l UserKeys) bool {
		return k.User == l.User && slices.Equal(k.Keys, l.Keys)
	})
}

// UsesAgent says that an access credential of v is for the guest's agent.
func UsesAgent(v *vmi.VirtualMachineInstance) bool {
	return slices.ContainsFunc(v.Spec.AccessCredentials, func(c vmi.AccessCredential) bool {
		return c.SSHPublicKey != nil && c.SSHPublicKey.PropagationMethod.QemuGuestAgent != nil || c.UserPassword != nil
	})
}

// ByAgent returns what the guest's agent writes, and the faults of the Secrets, which
// name lines and keys and no content. What has a fault is left out, except that a user
// keeps the keys that are right.
func ByAgent(v *vmi.VirtualMachineInstance, contents Contents) (Access, []string) {
	keys, faults := userKeys(v, contents)
	passwords, more := passwords(v, contents)
	return Access{Keys: keys, Passwords: passwords}, append(faults, more...)
}

func userKeys(v *vmi.VirtualMachineInstance, contents Contents) (all []UserKeys, faults []string) {
	of := map[string][]string{}
	for _, c := range v.Spec.AccessCredentials {
		if c.SSHPublicKey == nil || c.SSHPublicKey.PropagationMethod.QemuGuestAgent == nil {
			continue
		}
		secret := secretOf(c)
		values, ok := contents[secret]
		if !ok {
			// Its users may have keys of other Secrets, which alone are not what is desired.
			return nil, append(faults, fmt.Sprintf("secret %q cannot be read", secret))
		}
		keys, wrong := keysOf(secret, values)
		faults = append(faults, wrong...)
		for _, user := range c.SSHPublicKey.PropagationMethod.QemuGuestAgent.Users {
			of[user] = append(of[user], keys...)
		}
	}
	if len(of) > MaxUsers {
		return nil, append(faults, fmt.Sprintf("the access credentials name %d users for SSH public keys, and keys of at most %d are written", len(of), MaxUsers))
	}
	for _, user := range slices.Sorted(maps.Keys(of)) {
		keys := sorted(of[user])
		switch {
		case !vmi.IsGuestUser(user):
			faults = append(faults, fmt.Sprintf("%q cannot be the name of a user of the guest", user))
		case len(keys) > MaxKeys:
			faults = append(faults, fmt.Sprintf("user %s has %d SSH public keys, and at most %d are written", user, len(keys), MaxKeys))
		default:
			all = append(all, UserKeys{User: user, Keys: keys})
		}
	}
	return all, faults
}

func passwords(v *vmi.VirtualMachineInstance, contents Contents) (all []Password, faults []string) {
	in := map[string]string{} // the Secret of a user's password
	for _, c := range v.Spec.AccessCredentials {
		if c.UserPassword == nil {
			continue
		}
		secret := secretOf(c)
		values, ok := contents[secret]
		if !ok {
			faults = append(faults, fmt.Sprintf("secret %q cannot be read", secret))
			continue
		}
		for _, user := range slices.Sorted(maps.Keys(values)) {
			// Files and "echo" end with a new line, passwords do not.
			password := bytes.TrimRight(values[user], "\r\n")
			if other, ok := in[user]; ok && other != secret {
				faults = append(faults, fmt.Sprintf("the password of user %s is in secret %q and in secret %q: remove it from one of them", user, other, secret))
				all = slices.DeleteFunc(all, func(p Password) bool { return p.User == user })
				continue
			}
			if _, ok := in[user]; ok {
				continue
			}
			in[user] = secret
			if why := passwordFault(user, password); why != "" {
				faults = append(faults, fmt.Sprintf("secret %q: key %s %s", secret, user, why))
				continue
			}
			all = append(all, Password{User: user, Password: string(password)})
		}
	}
	if len(all) > MaxUsers {
		return nil, append(faults, fmt.Sprintf("the access credentials have passwords of %d users, and those of at most %d are set", len(all), MaxUsers))
	}
	slices.SortFunc(all, func(a, b Password) int { return bytes.Compare([]byte(a.User), []byte(b.User)) })
	return all, faults
}

// passwordFault says why a password cannot be set. The programs that set passwords
// read lines: with a line break in it a password would be that of another user too.
func passwordFault(user string, password []byte) string {
	switch {
	case !vmi.IsGuestUser(user):
		return "cannot be the name of a user of the guest"
	case len(password) == 0:
		return "is empty: a user cannot have an empty password"
	case len(password) > MaxPassword:
		return fmt.Sprintf("has %d bytes, and a password has at most %d", len(password), MaxPassword)
	case bytes.ContainsFunc(password, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "has control characters, which a password cannot have"
	}
	return ""
}
