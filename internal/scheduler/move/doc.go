// Package move says whether Podvisor itself may migrate a VMI now, and makes the migration.
//
// The packages that decide why a VMI is migrated share it. It computes; it touches nothing.
package move
