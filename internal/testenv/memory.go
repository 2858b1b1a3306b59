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
