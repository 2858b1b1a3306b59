// Package verb is the table of the verbs of VMs and VMIs, and their rules: what a verb
// needs of the objects, and what it does to them or to the guest.
//
// [All] are the rows. A [Verb] says where it is served, which role calls it, and by [Verb.Decide]
// what a request does: a [Plan] of patches, of a call to the launcher or of a stream, or an
// error that is the answer. The API server's part, scheduler/subresource, and the API server
// for tests, vmi/client/fake, both carry out that plan. Discovery, the roles in
// manifests/rbac/users.yaml and the table in docs/subresources.md follow from the rows.
//
// A further verb is a row in the file of its noun, with its rule.
//
// It computes; it touches nothing. Errors are a metav1.Status, as [apierrors.APIStatus].
//
// Traps: clients match the messages of some refusals word by word.
//
// [apierrors.APIStatus]: https://pkg.go.dev/k8s.io/apimachinery/pkg/api/errors#APIStatus
package verb
