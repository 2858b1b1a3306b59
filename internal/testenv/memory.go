package testenv

import "runtime"

// InUse is the memory of this process's heap and stacks that is in use, in bytes, after a
// collection.
func InUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// InspectionMemory is what the inspection of an image by a test binary gets, in bytes: most,
// as everywhere, or with the race detector, which alone takes more now and then, 1 GiB.
func InspectionMemory(most int64) int64 {
	if Race {
		return 1 << 30
	}
	return most
}
