package kvm

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// The requests of KVM's API that are of x86, from linux/kvm.h.
const (
	getSupportedCPUID = 0xc008ae05
	setRegisters      = 0x4090ae82
	getSystem         = 0x8138ae83
	setSystem         = 0x4138ae84
	setCPUID          = 0x4008ae90
)

// Why KVM gives a guest back.
const (
	exitIO       = 2
	exitHalt     = 5
	exitShutdown = 8
	exitNoEntry  = 9
	exitInternal = 17
)

// segment and table are a processor's view of memory, as in linux/kvm.h.
type segment struct {
	base                                uint64
	limit                               uint32
	selector                            uint16
	kind, present, dpl, db, s, l, g, av uint8
	unusable, _                         uint8
}

type table struct {
	base  uint64
	limit uint16
	_     [3]uint16
}

// system is struct kvm_sregs.
type system struct {
	cs, ds, es, fs, gs, ss, tr, ldt segment
	gdt, idt                        table
	cr0, cr2, cr3, cr4, cr8, efer   uint64
	_                               [5]uint64
}

// registers is struct kvm_regs.
type registers struct {
	rax, rbx, rcx, rdx, rsi, rdi, rsp, rbp uint64
	_                                      [8]uint64
	rip, rflags                            uint64
}

// maxCPUID is how many entries of CPUID there may be.
const maxCPUID = 256

// prepare makes the processor one that is in 64-bit mode and about to begin.
func prepare(device, _, cpu int) error {
	var cpuid struct {
		count, _ uint32
		entries  [maxCPUID][40]byte
	}
	cpuid.count = maxCPUID
	if _, err := ask(device, getSupportedCPUID, uintptr(unsafe.Pointer(&cpuid)), "ask what processors it can make"); err != nil {
		return err
	}
	if _, err := ask(cpu, setCPUID, uintptr(unsafe.Pointer(&cpuid)), "choose the processor"); err != nil {
		return err
	}
	var s system
	if _, err := ask(cpu, getSystem, uintptr(unsafe.Pointer(&s)), "read the processor's state"); err != nil {
		return err
	}
	s.cs = segment{limit: 0xffffffff, selector: codeSelector, kind: 11, present: 1, s: 1, l: 1, g: 1}
	data := segment{limit: 0xffffffff, selector: dataSelector, kind: 3, present: 1, db: 1, s: 1, g: 1}
	s.ds, s.es, s.fs, s.gs, s.ss = data, data, data, data, data
	s.gdt, s.idt = table{base: segmentsAt, limit: 23}, table{base: interruptsAt, limit: 16*4 - 1}
	s.cr0 = 1<<31 | 1<<16 | 1<<5 | 1<<4 | 1<<1 | 1 // paging, write protection, FPU, protection
	s.cr3, s.cr4 = tablesAt, 1<<9|1<<5             // SSE, large addresses
	s.efer = 1<<10 | 1<<8                          // 64-bit mode
	if _, err := ask(cpu, setSystem, uintptr(unsafe.Pointer(&s)), "set the processor to 64-bit mode"); err != nil {
		return err
	}
	r := registers{rip: codeAt, rsp: stackTop, rflags: 2}
	_, err := ask(cpu, setRegisters, uintptr(unsafe.Pointer(&r)), "set the processor's registers")
	return err
}

// judge says whether the guest stopped where it should, with what it should have
// computed.
func judge(state []byte) error {
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(state[at:]) }
	switch reason := word(exitReason); reason {
	case exitIO:
		port := binary.NativeEndian.Uint16(state[exitData+2:])
		at := binary.NativeEndian.Uint64(state[exitData+8:])
		if port != answerPort || at > uint64(len(state)-4) {
			return fmt.Errorf("%w: it wrote to port 0x%x", ErrUnusable, port)
		}
		if said := word(int(at)); said != answer {
			return fmt.Errorf("%w: it computed 0x%x instead of 0x%x", ErrUnusable, said, answer)
		}
		return nil
	case exitHalt:
		return fmt.Errorf("%w: it computed wrongly", ErrUnusable)
	case exitShutdown:
		return fmt.Errorf("%w: it crashed", ErrUnusable)
	case exitNoEntry:
		return fmt.Errorf("%w: the processor refuses its state (0x%x)", ErrUnusable, word(exitData))
	case exitInternal:
		return fmt.Errorf("%w: KVM does not know one of its instructions (internal error %d)", ErrUnusable, word(exitData))
	default:
		return fmt.Errorf("%w: it ended for the reason %d", ErrUnusable, reason)
	}
}
