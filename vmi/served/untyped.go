package served

import "slices"

// Untyped are the fields of KubeVirt's API that the kind has no type for, sorted by
// their paths. All are refused: the API server does not have them, and decoding an
// object loses them. A path stands for all that is below it.
func Untyped(kind string) Fields { return slices.Clone(untyped[kind]) }

// UntypedKind says why a kind of KubeVirt's API has no type. It is false for all
// other kinds.
func UntypedKind(kind string) (why string, ok bool) {
	why, ok = untypedKinds[kind]
	return why, ok
}
