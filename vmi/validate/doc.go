// Package validate says what is wrong with a machine's spec.
//
// [Spec] returns every fault at once, each with the path of the field. It is the
// only validation: admission, virt-controller and anybody else call the same
// function. Defaults are expected to be applied (package vmi/defaults).
//
// The served schema has checked types, enumerations and lengths before; what it
// cannot express, above all what concerns two fields at once, is checked here,
// and so is what would make a machine that cannot work. The package computes; it
// touches nothing.
package validate
