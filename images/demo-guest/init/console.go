package main

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// shell keeps a root shell on the serial console, which starts at Enter; the
// log of a guest without a user at its console has no prompts. There is nothing
// to protect: a user with the console owns the guest.
func (m *guest) shell() {
	active, _ := os.ReadFile("/sys/class/tty/console/active")
	names := strings.Fields(string(active))
	if len(names) == 0 {
		return
	}
	device := "/dev/" + names[len(names)-1]
	for !m.ending() {
		if err := m.oneShell(device); err != nil {
			say("shell on %s: %v", device, err)
			return
		}
	}
}

func (m *guest) oneShell(device string) error {
	tty, err := os.OpenFile(device, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer tty.Close()
	// A serial line knows no size, and the shell would take it for a very narrow one.
	_ = unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	say("press Enter for a root shell")
	if _, err := tty.Read(make([]byte, 1024)); err != nil {
		return err
	}
	exited, err := m.children.start(process{
		args:  []string{"sh", "-i"},
		env:   []string{`PS1=\u@\h:\w# `, "USER=root"},
		files: []*os.File{tty, tty, tty},
		attr:  &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0},
	})
	if err != nil {
		return err
	}
	<-exited
	return nil
}
