//go:build race

package testenv

// Race says that the test runs with the race detector, which needs memory and processor
// time of its own.
const Race = true
