package domain

// aliasPrefix begins the aliases that libvirt takes from a user.
const aliasPrefix = "ua-"

// DiskAlias is the alias of the disk of this name in its domain.
func DiskAlias(name string) string { return aliasPrefix + name }

// InterfaceAlias is the alias of the interface of this name in its domain. No disk
// has it, since the name of a disk has no underscore: libvirt refuses a domain in
// which two devices have one alias.
func InterfaceAlias(name string) string { return aliasPrefix + "net_" + name }
