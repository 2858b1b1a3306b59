package main

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/launcher/terminal"
)

// leaves is ^], the key that powers the guest off.
const leaves = 0x1d

// console is where the guest's console is.
type console struct {
	raw     *terminal.Terminal // nil: the input is no terminal
	in      io.Reader
	out     io.Writer
	log     io.Writer
	onLeave func() // called for each ^]
}

// openConsole makes the terminal raw, if the input is one.
func openConsole(in, out *os.File) (*console, error) {
	raw, err := terminal.Open(in)
	if err != nil {
		return nil, err
	}
	t := &console{raw: raw, in: in, out: out, log: os.Stderr}
	if raw != nil {
		t.in, t.out, t.log = raw, raw.Guest(), raw.Log()
		signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT, syscall.SIGTSTP) // keys are the guest's
	}
	return t, nil
}

// Close gives the terminal back.
func (t *console) Close() error {
	if t.raw == nil {
		return nil
	}
	return t.raw.Close()
}

// Read reads what is typed for the guest.
func (t *console) Read(b []byte) (int, error) {
	for {
		n, err := t.in.Read(b)
		kept := bytes.ReplaceAll(b[:n], []byte{leaves}, nil)
		for range n - len(kept) {
			t.onLeave()
		}
		if n = copy(b, kept); n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
	}
}

// Write shows what the guest writes.
func (t *console) Write(b []byte) (int, error) { return t.out.Write(b) }
