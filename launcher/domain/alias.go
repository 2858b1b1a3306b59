package domain

// DiskAlias is the alias of the disk of this name in its domain.
func DiskAlias(name string) string { return userAlias(name) }

// InterfaceAlias is the alias of the interface of this name in its domain.
func InterfaceAlias(name string) string { return userAlias(name) }

// userAlias is an alias that libvirt does not choose, and so one that no other
// device takes.
func userAlias(name string) string { return "ua-" + name }
