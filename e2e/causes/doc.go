// Package causes makes the mistakes that users make most often with VMIs, and
// measures when the VMI says what is wrong.
//
// [All] are the mistakes, [Measure] makes one and waits until the condition Ready of
// its VMI names the cause. It also finds out when Kubernetes itself says the cause
// about the pod: in a condition of it, in the state of a container, or in an event.
//
// It is a controller: it uses the API of a cluster with Podvisor, and nothing else.
package causes
