//go:build !race

package image

// childMemory is what an inspection has in tests, in bytes: as everywhere.
const childMemory = InspectionMemory
