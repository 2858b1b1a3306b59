//go:build amd64 || arm64

package kvm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The requests of KVM's API, from linux/kvm.h.
const (
	createVM   = 0xae01
	getRunSize = 0xae04
	createVCPU = 0xae41
	setMemory  = 0x4020ae46
	run        = 0xae80
)

// Places in the page that KVM shares with us.
const (
	immediateExit = 1
	exitReason    = 8
	exitData      = 32
)

func probe(path string, code []byte, limit time.Duration) error {
	device, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(device)
	vm, err := ask(device, createVM, 0, "make a virtual machine")
	if err != nil {
		return err
	}
	defer unix.Close(vm)
	mem, err := unix.Mmap(-1, 0, memorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("get memory for the guest: %w", err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	load(mem, code)
	region := struct {
		slot, flags        uint32
		guest, size, local uint64
	}{size: memorySize, local: uint64(uintptr(unsafe.Pointer(&mem[0])))}
	if _, err := ask(vm, setMemory, uintptr(unsafe.Pointer(&region)), "give it memory"); err != nil {
		return err
	}
	cpu, err := ask(vm, createVCPU, 0, "make a processor")
	if err != nil {
		return err
	}
	defer unix.Close(cpu)
	if err := prepare(device, vm, cpu); err != nil {
		return err
	}
	size, err := ask(device, getRunSize, 0, "ask for the size of its state")
	if err != nil {
		return err
	}
	state, err := unix.Mmap(cpu, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("share the processor's state: %w", err)
	}
	defer func() { _ = unix.Munmap(state) }()
	return execute(cpu, state, limit)
}

// ask makes a request of KVM that only a KVM that is of no use refuses. The kernel
// aborts some requests while a signal is pending for the thread.
func ask(fd int, request, argument uintptr, what string) (int, error) {
	for {
		r, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, argument)
		switch {
		case errors.Is(e, unix.EINTR):
			continue
		case e != 0:
			return 0, fmt.Errorf("%w: %s: %w", ErrUnusable, what, e)
		}
		return int(r), nil
	}
}

// execute runs the guest until it has said something, or is over, or the time
// is.
func execute(cpu int, state []byte, limit time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, done := unix.Gettid(), make(chan struct{})
	var late atomic.Bool
	var watch sync.WaitGroup
	watch.Go(func() {
		after := time.NewTimer(limit)
		defer after.Stop()
		select {
		case <-done:
			return
		case <-after.C:
		}
		late.Store(true)
		state[immediateExit] = 1
		// The runtime's own signal for waking a thread: it is harmless.
		_ = unix.Tgkill(unix.Getpid(), thread, unix.SIGURG)
	})
	defer watch.Wait() // state is unmapped after this
	defer close(done)
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(cpu), run, 0)
		switch {
		case late.Load():
			return fmt.Errorf("%w: it did not end in %s", ErrUnusable, limit)
		case errors.Is(e, unix.EINTR), errors.Is(e, unix.EAGAIN):
			continue
		case e != 0:
			return fmt.Errorf("%w: run it: %w", ErrUnusable, e)
		}
		return judge(state)
	}
}
