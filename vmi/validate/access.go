package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// accessCredentials checks that each key or password has a source and a way.
func accessCredentials(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	for i := range s.AccessCredentials {
		c, here := &s.AccessCredentials[i], at.Index(i)
		if n := count(c.SSHPublicKey != nil, c.UserPassword != nil); n != 1 {
			l = append(l, field.Invalid(here, plural(n, "credential"), "must have exactly one of sshPublicKey and userPassword"))
		}
		if k := c.SSHPublicKey; k != nil {
			l = append(l, sshKey(here.Child("sshPublicKey"), k, s.Volumes)...)
		}
		if p := c.UserPassword; p != nil {
			l = append(l, secretSource(here.Child("userPassword", "source"), p.Source.Secret)...)
			if p.PropagationMethod.QemuGuestAgent == nil {
				l = append(l, field.Invalid(here.Child("userPassword", "propagationMethod"), "none", "must be qemuGuestAgent"))
			}
		}
	}
	return l
}

func secretSource(at *field.Path, s *vmi.CredentialSecret) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Invalid(at, "none", "must name a Secret, in secret.secretName")}
	}
	var l field.ErrorList
	for _, why := range validation.IsDNS1123Subdomain(s.SecretName) {
		l = append(l, field.Invalid(at.Child("secret", "secretName"), s.SecretName, why))
	}
	return l
}

func sshKey(at *field.Path, k *vmi.SSHPublicKeyCredential, volumes []vmi.Volume) field.ErrorList {
	l := secretSource(at.Child("source"), k.Source.Secret)
	m, way := k.PropagationMethod, at.Child("propagationMethod")
	if n := count(m.ConfigDrive != nil, m.NoCloud != nil, m.QemuGuestAgent != nil); n != 1 {
		l = append(l, field.Invalid(way, plural(n, "method"), "must be exactly one of configDrive, noCloud and qemuGuestAgent"))
	}
	if m.NoCloud != nil && !slices.ContainsFunc(volumes, func(v vmi.Volume) bool { return v.CloudInitNoCloud != nil }) {
		l = append(l, field.Invalid(way, "noCloud", "needs a cloudInitNoCloud volume to put the keys into: add one"))
	}
	if m.ConfigDrive != nil && !slices.ContainsFunc(volumes, func(v vmi.Volume) bool { return v.CloudInitConfigDrive != nil }) {
		l = append(l, field.Invalid(way, "configDrive", "needs a cloudInitConfigDrive volume to put the keys into: add one"))
	}
	if a := m.QemuGuestAgent; a != nil && len(a.Users) == 0 {
		l = append(l, field.Invalid(way.Child("qemuGuestAgent", "users"), "none", "must name at least one user of the guest"))
	}
	if a := m.QemuGuestAgent; a != nil {
		for i, u := range a.Users {
			if !vmi.IsGuestUser(u) {
				l = append(l, field.Invalid(way.Child("qemuGuestAgent", "users").Index(i), u,
					"cannot be the name of a user of the guest: at most 104 letters, digits and characters of ._@\\ $-, of which the first is a letter, a digit or _"))
			}
		}
	}
	return l
}
