package main

import "runtime/debug"

// memoryLimit is the memory for which garbage is collected, in bytes: about what the
// pod asks for the launcher.
const memoryLimit = 24 << 20

func limitMemory() { debug.SetMemoryLimit(memoryLimit) }
