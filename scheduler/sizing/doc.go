// Package sizing reads the instance types and preferences that VMs name from the API server,
// and the claims whose labels name them.
//
// [Lookup] is given to package vmi/instancetype, which says what is to be read and what
// becomes of it. It writes nothing.
package sizing
