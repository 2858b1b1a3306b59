//go:build core

package main

// The types of the core API, which vmi is made of too. Any program that imports
// them links them all.
import _ "k8s.io/api/core/v1"
