// Package served says what of the model is not served, and why. These are fields, values
// and kinds that have a type in package vmi and are not in the API server's schema.
//
// The API server does not accept them. kubectl gets an error. A client that does not ask
// for strict validation loses the field, and gets only a warning. [Unserved] lists them
// beforehand, and [Fields.In] finds them in an object:
//
//	for _, f := range served.Unserved("VirtualMachineInstance").In(object) {
//		fmt.Println(f)
//	}
//
// [Untyped] lists the fields of KubeVirt's that have no type at all, with the reasons.
//
// The table is generated from the markers +podvisor:unserved and
// +podvisor:refused of package vmi, together with the schema; docs/fields.md lists
// the served fields too. The package computes; it touches nothing.
//
// A program that makes pods or domains of VMIs that no API server has checked asks
// [Faults]. It returns all that this build cannot do for a spec. pod.Render and
// domain.Build do.
//
// Traps: objects are trees, as JSON and YAML decode to. A typed object would leave out
// what is false, zero or empty, which the API server would still refuse. Look before
// package defaults has completed the object: defaults set fields that are not served;
// [Faults] leaves these out. Kinds are of the group kubevirt.io; which group an object is
// of is not looked at.
package served
