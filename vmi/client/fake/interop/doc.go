// Package interop has the tests that programs which know nothing of Podvisor work with the
// fake API server: kubectl, and a manager of controller-runtime. It is a module of its own, so
// that no importer of the fake gets their requirements.
package interop
