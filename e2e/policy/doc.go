// Package policy evaluates the ValidatingAdmissionPolicies of the manifests, without an API
// server: its tests ask them about what the library makes, so that a new kind of volume that
// they refuse is found without a cluster. What an API server adds, the tests of package
// apiserver see.
package policy
