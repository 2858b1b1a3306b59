// Package archtest holds the architecture as tests: which layer a package is
// in, what a layer may import, which things are written in one place only, and
// which words are not used.
//
// The rules are those of the root package's documentation. A failure names the
// file and the import that broke the rule.
package archtest
