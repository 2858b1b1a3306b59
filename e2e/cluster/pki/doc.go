// Package pki makes the certificates of a throw-away cluster.
//
// [New] makes an authority, [Authority.Issue] a certificate that it signed. Keys
// are ECDSA P-256, made in microseconds; everything is valid for ten years and
// for clients and servers alike, which is right for a cluster that lives on one
// host for a day, and for no other.
//
// It touches nothing but the clock and the random source; the caller writes the
// files.
package pki
