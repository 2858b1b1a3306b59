package main

import (
	"encoding/binary"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// ignoreButton is a file: while it exists, the guest ignores the power button.
	// Tests write it through write_files.
	ignoreButton = "/etc/podvisor-guest/ignore-power-button"
	// stopTimeout is how long processes have to end by themselves.
	stopTimeout = 500 * time.Millisecond
)

// watchPower waits for the power button and for the signals by which busybox's
// poweroff, halt and reboot reach process 1.
func (m *guest) watchPower() {
	var once sync.Once
	end := func(how int) { once.Do(func() { m.powerOff(how) }) }

	devices, _ := filepath.Glob("/dev/input/event*")
	for _, device := range devices {
		go func() {
			for powerKey(device) {
				if _, err := os.Stat(ignoreButton); err == nil {
					say("power button pressed, ignored")
					continue
				}
				say("power button pressed, shutting down in order")
				end(unix.LINUX_REBOOT_CMD_POWER_OFF)
			}
		}()
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTERM)
	for s := range asked {
		if s == unix.SIGTERM {
			say("asked to reboot, shutting down in order")
			end(unix.LINUX_REBOOT_CMD_RESTART)
			continue
		}
		say("asked to power off, shutting down in order")
		end(unix.LINUX_REBOOT_CMD_POWER_OFF)
	}
}

// powerKey waits until the power key is pressed on an input device. It
// returns false if that cannot happen any more.
func powerKey(device string) bool {
	const (
		size     = 24 // struct input_event: time 16, type 2, code 2, value 4
		key      = 1  // EV_KEY
		keyPower = 116
	)
	f, err := os.Open(device)
	if err != nil {
		return false
	}
	defer f.Close()
	event := make([]byte, size)
	for {
		if n, err := f.Read(event); err != nil || n != size {
			return false
		}
		kind, code := binary.LittleEndian.Uint16(event[16:]), binary.LittleEndian.Uint16(event[18:])
		if pressed := binary.LittleEndian.Uint32(event[20:]) == 1; kind == key && code == keyPower && pressed {
			return true
		}
	}
}

// powerOff ends all processes, writes everything to the disks and ends the
// guest.
func (m *guest) powerOff(how int) {
	close(m.down)
	// SIGHUP ends interactive shells, which ignore SIGTERM.
	_ = unix.Kill(-1, unix.SIGTERM)
	_ = unix.Kill(-1, unix.SIGHUP)
	deadline := time.Now().Add(stopTimeout)
	for m.children.any() && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	unmountDisks()
	unix.Sync()
	if how == unix.LINUX_REBOOT_CMD_RESTART {
		say("rebooting")
	} else {
		say("powering off")
	}
	// The line must leave the serial port before the guest is gone.
	_ = unix.IoctlSetInt(1, unix.TCSBRK, 1)
	_ = unix.Reboot(how)
}

// unmountDisks unmounts what the user of the guest has mounted.
func unmountDisks() {
	mounts, _ := os.ReadFile("/proc/mounts")
	var dirs []string
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[0], "/dev/") {
			dirs = append(dirs, f[1])
		}
	}
	for _, dir := range slices.Backward(dirs) {
		if err := unix.Unmount(dir, 0); err != nil {
			say("unmount %s: %v", dir, err)
		}
	}
}
