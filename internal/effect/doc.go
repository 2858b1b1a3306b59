// Package effect tests that every field of a VMI's spec that is served has an
// effect: changing it changes the pod, the domain, the network, a disk, or how the
// VMI is evicted.
//
// The fields are found by reflection, less those that package served lists. Each
// is changed at every place where a VMI of testdata has it, or has the object that
// it is a field of. A new field needs nothing here unless its values are limited,
// or it is in a list that no VMI of testdata has: then the test says what it needs.
package effect
