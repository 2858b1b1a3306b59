// Package carry copies the bytes of streams that are open for long and carry little most
// of that time: consoles, screens and forwarded ports. [Copy] holds 1 KiB while little
// comes, and 32 KiB of a pool while more does. [Both] joins two connections by it, and [Bulk]
// those of a migration, which carry all they can.
package carry
