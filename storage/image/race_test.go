//go:build race

package image

// childMemory is what an inspection has in tests, in bytes. The race detector alone takes
// more than [InspectionMemory] now and then.
const childMemory = 1 << 30
