// Command apigen writes what follows from the types of package vmi, and of each
// package below it whose doc.go has the marker +groupName, one for an API group:
// the served schema (manifests/crds, and for programs internal/vmi/schema), the table of fields
// (docs/fields.md), what
// is not served or has no type, with the reasons, in Go (vmi/served), and the
// definitions of the kinds, by which they are served and cached
// (zz_generated.definitions.go in each of the packages).
//
// controller-gen makes a schema of all fields. apigen reads the same source for
// markers of its own, and keeps of the schema what is built:
//
//	+podvisor:unserved=REASON   on a field, kind or constant: typed, but not in the
//	                            schema, because its effect is not built yet
//	+podvisor:refused=REASON    on a field: typed so that validation can say what to
//	                            use instead; it never enters the schema
//	+podvisor:unservedValues=VALUE;VALUE,REASON
//	                            on a field that is a word: these values are not served;
//	                            a rule of the schema refuses them
//	+podvisor:unserved:PATH=REASON
//	+podvisor:refused:PATH=REASON
//	                            on a field whose type is of another package: the same
//	                            for the field at PATH of that type, JSON names with
//	                            dots between; also on a struct that is inlined
//	+podvisor:enum              on a string type: its constants are its values
//	+podvisor:exactlyOne:of=a;b,message="…"
//	+podvisor:atMostOne:of=a;b,message="…"
//	+podvisor:atLeastOne:of=a;b,message="…"
//	                            on a struct: a rule over those of the fields that are
//	                            served, or over the number of its fields if that says
//	                            the same; the message ends with their names
//
// A field below an unserved one needs no marker, until the one above is served.
// A validation rule that names an unserved field is left out as well. To serve a
// field, remove its marker and run make generate.
//
// Fields of KubeVirt's that have no type are listed with their reasons in
// refused.go.
package main
