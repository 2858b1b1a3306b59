package kvm

// The guest's memory, by address. It is one page of 2 MiB, which is mapped to
// itself.
const (
	memorySize   = 2 << 20
	codeAt       = 0x1000
	handlerAt    = 0x1100
	interruptsAt = 0x4000
	segmentsAt   = 0x5000
	stackTop     = 0x8000
	tablesAt     = 0x10000
)

// code is what the guest does:
//
//	      xor    %eax,%eax
//	      xor    %edx,%edx
//	      mov    $0x50564d31,%ebx
//	      xor    %ecx,%ecx
//	      lock cmpxchg16b 0x3000      # stores rcx:rbx, where zero was
//	      jne    bad
//	      int3                        # the handler adds one at 0x3010
//	      mov    0x3000,%eax
//	      add    0x3010,%eax
//	      mov    $0x10,%edx
//	      out    %eax,(%dx)
//	bad:  hlt
var code = []byte{
	0x31, 0xc0,
	0x31, 0xd2,
	0xbb, 0x31, 0x4d, 0x56, 0x50,
	0x31, 0xc9,
	0xf0, 0x48, 0x0f, 0xc7, 0x0c, 0x25, 0x00, 0x30, 0x00, 0x00,
	0x75, 0x15,
	0xcc,
	0x8b, 0x04, 0x25, 0x00, 0x30, 0x00, 0x00,
	0x03, 0x04, 0x25, 0x10, 0x30, 0x00, 0x00,
	0xba, 0x10, 0x00, 0x00, 0x00,
	0xef,
	0xf4,
}

// handler is where int3 leads:
//
//	incl   0x3010
//	iretq
var handler = []byte{0xff, 0x04, 0x25, 0x10, 0x30, 0x00, 0x00, 0x48, 0xcf}

// What the guest says when it is done, and where.
const (
	answer     = 0x50564d31 + 1
	answerPort = 0x10
)

// Selectors of the guest's segments.
const (
	codeSelector = 8
	dataSelector = 16
)

// load puts a guest into its memory: its code, a table for the one interrupt, the
// segments and the page tables.
func load(mem, code []byte) {
	copy(mem[codeAt:], code)
	copy(mem[handlerAt:], handler)
	const gate, breakpoint = 0x8e, 3
	entry := uint64(handlerAt&0xffff) | codeSelector<<16 | gate<<40 | uint64(handlerAt>>16)<<48
	put(mem, interruptsAt+16*breakpoint, entry)
	put(mem, segmentsAt+codeSelector, 0x00209a0000000000)
	put(mem, segmentsAt+dataSelector, 0x0000920000000000)
	const present, large = 3, 0x80
	put(mem, tablesAt, tablesAt+0x1000|present)
	put(mem, tablesAt+0x1000, tablesAt+0x2000|present)
	put(mem, tablesAt+0x2000, 0|present|large)
}

func put(mem []byte, at int, v uint64) {
	for i := range 8 {
		mem[at+i] = byte(v >> (8 * i))
	}
}
