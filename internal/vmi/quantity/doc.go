// Package quantity bounds the quantities of objects, so that nothing that is
// computed with them takes long.
//
// A quantity of few characters can stand for a number of a billion digits, as
// 1e999999999 does, and there are such texts that take a core for minutes and
// memory by the gigabyte when they are decoded, others when they are compared,
// subtracted or written. So there are two checks:
//
//   - [FaultsIn] reads the JSON of an object and finds the quantities whose text is
//     out of bounds, before anything decodes them. What it accepts has at most
//     [MaxLength] characters and an exponent from -19 to 19, and every operation on
//     it takes microseconds. The served schema has the same bounds: [Pattern].
//   - [Faults] finds in an object that was decoded, or made in Go, the quantities
//     beyond [Most], with which Kubernetes and QEMU cannot compute in 64 bits.
//
// [Parse] is for a field that holds a quantity as a plain string.
//
// The package computes; it touches nothing.
//
// Trap: a resource.Quantity that was decoded without FaultsIn may have cost its
// time already.
package quantity
