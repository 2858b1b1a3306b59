package main

import (
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shell keeps a root shell on the serial console. There is nothing to protect:
// whoever has the console owns the guest.
func (m *machine) shell() {
	active, _ := os.ReadFile("/sys/class/tty/console/active")
	names := strings.Fields(string(active))
	if len(names) == 0 {
		return
	}
	device := "/dev/" + names[len(names)-1]
	for {
		began := time.Now()
		if err := m.oneShell(device); err != nil {
			say("shell on %s: %v", device, err)
			return
		}
		// A shell that ends at once would fill the console with prompts.
		if time.Since(began) < time.Second {
			time.Sleep(time.Second)
		}
		select {
		case <-m.down:
			return
		default:
		}
	}
}

func (m *machine) oneShell(device string) error {
	tty, err := os.OpenFile(device, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer tty.Close()
	// A serial line knows no size; without one the shell asks the terminal for
	// it by an escape sequence, which is noise in a log.
	_ = unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
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
