package domain

import (
	"strings"

	"libvirt.org/go/libvirtxml"
)

// aliasPrefix begins the aliases that libvirt takes from a user.
const aliasPrefix = "ua-"

// DiskAlias is the alias of the disk of this name in its domain.
func DiskAlias(name string) string { return aliasPrefix + name }

// InterfaceAlias is the alias of the interface of this name in its domain. No disk
// has it, since the name of a disk has no underscore: libvirt refuses a domain in
// which two devices have one alias.
func InterfaceAlias(name string) string { return aliasPrefix + "net_" + name }

// deviceAlias is the alias of a device of a kind that has a name in the spec, or nil
// if libvirt takes no such name in an alias: the alias is libvirt's then.
func deviceAlias(kind, name string) *libvirtxml.DomainAlias {
	other := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r)
	}
	if name == "" || strings.ContainsFunc(name, other) {
		return nil
	}
	return &libvirtxml.DomainAlias{Name: aliasPrefix + kind + "_" + name}
}
