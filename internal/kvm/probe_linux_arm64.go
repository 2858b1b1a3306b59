package kvm

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// The requests of KVM's API that are of ARM, from linux/kvm.h.
const (
	preferredTarget = 0x8020aeaf
	initVCPU        = 0x4020aeae
	setRegister     = 0x4010aeac
)

// programCounter is the register of the next instruction: a core register of 64 bits, at
// byte 256 of struct kvm_regs, counted in words of 32 bits.
const programCounter = 0x6030000000100000 | 256/4

// Why KVM gives a guest back.
const (
	exitNoEntry  = 9
	exitMMIO     = 6
	exitInternal = 17
)

// prepare makes the processor the host's own, about to begin at address 0.
func prepare(_, vm, cpu int) error {
	var target struct {
		kind     uint32
		features [7]uint32
	}
	if _, err := ask(vm, preferredTarget, uintptr(unsafe.Pointer(&target)), "ask what processor it can make"); err != nil {
		return err
	}
	if _, err := ask(cpu, initVCPU, uintptr(unsafe.Pointer(&target)), "choose the processor"); err != nil {
		return err
	}
	var begin uint64
	register := struct{ id, value uint64 }{programCounter, uint64(uintptr(unsafe.Pointer(&begin)))}
	_, err := ask(cpu, setRegister, uintptr(unsafe.Pointer(&register)), "set the processor's first instruction")
	return err
}

// judge says whether the guest stopped where it should, with what it should have
// computed.
func judge(state []byte) error {
	switch reason := binary.NativeEndian.Uint32(state[exitReason:]); reason {
	case exitMMIO:
		at, said := binary.NativeEndian.Uint64(state[exitData:]), binary.NativeEndian.Uint32(state[exitData+8:])
		if isWrite := state[exitData+20] != 0; at != answerAt || !isWrite {
			return fmt.Errorf("%w: it used the address 0x%x", ErrUnusable, at)
		}
		if said != answer {
			return fmt.Errorf("%w: it computed 0x%x instead of 0x%x", ErrUnusable, said, answer)
		}
		return nil
	case exitNoEntry:
		return fmt.Errorf("%w: the processor refuses its state (0x%x)", ErrUnusable, binary.NativeEndian.Uint64(state[exitData:]))
	case exitInternal:
		return fmt.Errorf("%w: KVM does not know one of its instructions (internal error %d)", ErrUnusable, binary.NativeEndian.Uint32(state[exitData:]))
	default:
		return fmt.Errorf("%w: it ended for the reason %d", ErrUnusable, reason)
	}
}
