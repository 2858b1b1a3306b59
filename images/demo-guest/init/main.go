package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	if filepath.Base(os.Args[0]) == dhcpEventName {
		if err := dhcpEvent(os.Args[1:], os.Getenv); err != nil {
			say("dhcp: %v", err)
			os.Exit(1)
		}
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "init: runs as process 1 of the demo guest only")
		os.Exit(1)
	}
	m := &guest{children: newChildren()}
	m.boot()
	m.wait()
}

// guest is the running guest.
type guest struct {
	children *children
	modules  *modules
	seed     seed
	// down is closed when the guest has begun to power off, so that nothing new
	// is started then.
	down chan struct{}
}

// boot brings the guest up. A step that fails is reported on the console and the
// next one follows, because a guest with a console is easier to debug than one
// that panics.
func (m *guest) boot() {
	m.down = make(chan struct{})
	mountAll()
	openConsole()
	say("init started %.1f s after the kernel, boot id %s", uptime(), bootID())

	m.must("bring up the processors", bringUpProcessors("/sys/devices/system/cpu"))
	var err error
	m.modules, err = openModules("/lib/modules/index")
	m.must("read the module index", err)
	m.modules.loadForDevices()
	go m.watchPower()

	m.seed, err = readSeed(m.modules)
	m.must("read the cloud-init disk", err)
	m.must("set the host name", setHostname(m.seed.hostname()))
	for _, c := range m.seed.user.BootCommands {
		m.command(c)
	}
	m.network()
	m.must("write the SSH public keys of meta-data", m.seed.meta.writeKeys())
	m.must("write the files of user-data", writeFiles(m.seed.user.Files))
	m.serve()
	say("booted in %.1f s", uptime())
	say("ready, serving HTTP on port 80 as %s", hostname())
	go m.shell()
	go m.agent()
	m.runUserData()
}

// must prints the error, if there is one.
func (m *guest) must(what string, err error) {
	if err != nil {
		say("%s: %v", what, err)
	}
}

// runUserData runs the script or the commands of the seed.
func (m *guest) runUserData() {
	u := m.seed.user
	for _, key := range u.Ignored {
		say("user-data: %q is not supported, ignored", key)
	}
	if len(u.Script) > 0 {
		const path = "/run/user-data"
		m.must("write the script of user-data", os.WriteFile(path, u.Script, 0o700))
		m.command(command{path})
	}
	for _, c := range u.Commands {
		m.command(c)
	}
	if m.seed.found && !m.ending() {
		say("user-data finished")
	}
}

// command runs one command of the seed and prints its error.
func (m *guest) command(c command) {
	if m.ending() {
		return
	}
	if err := m.children.run(c[0], c[1:]...); err != nil && !m.ending() {
		say("command %q: %v", strings.Join(c, " "), err)
	}
}

// ending reports whether the guest has begun to power off.
func (m *guest) ending() bool {
	select {
	case <-m.down:
		return true
	default:
		return false
	}
}

// wait keeps process 1 alive; the guest ends in powerOff.
func (m *guest) wait() {
	select {}
}

func mountAll() {
	for _, fs := range []struct{ source, target, kind, data string }{
		{"dev", "/dev", "devtmpfs", ""},
		{"proc", "/proc", "proc", ""},
		{"sys", "/sys", "sysfs", ""},
		{"pts", "/dev/pts", "devpts", ""},
		{"run", "/run", "tmpfs", "mode=0755"},
		{"tmp", "/tmp", "tmpfs", "mode=1777"},
	} {
		// The console may not be open yet, so an error has nowhere to go; what
		// is missing shows soon enough.
		_ = os.MkdirAll(fs.target, 0o755)
		_ = unix.Mount(fs.source, fs.target, fs.kind, 0, fs.data)
	}
}

// openConsole makes the serial console this process's input and output.
// Before /dev is mounted the kernel has no console to give to process 1.
func openConsole() {
	fd, err := unix.Open("/dev/console", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return
	}
	for i := range 3 {
		_ = unix.Dup3(fd, i, 0)
	}
	if fd > 2 {
		_ = unix.Close(fd)
	}
}

// say prints one line of the guest's own on the console.
func say(format string, args ...any) {
	// One write, so that lines of several processes do not mix.
	line := "podvisor-guest: " + fmt.Sprintf(format, args...) + "\n"
	_, _ = syscall.Write(1, []byte(line))
}

// uptime is the time since the kernel started, in seconds.
func uptime() float64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return float64(ts.Sec) + float64(ts.Nsec)/1e9
}

// bootID is the kernel's random name of this boot: the same as long as the
// guest was not restarted.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

func hostname() string {
	name, _ := os.Hostname()
	return name
}

// setHostname sets the host name and leaves it in /etc/hostname. Without a name
// the guest gets a default and no such file: then the DHCP server may name it.
func setHostname(name string) error {
	if name == "" {
		return unix.Sethostname([]byte("podvisor-guest"))
	}
	if err := os.WriteFile("/etc/hostname", []byte(name+"\n"), 0o644); err != nil {
		return err
	}
	short, _, _ := strings.Cut(name, ".")
	hosts := "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 " + name
	if short != name {
		hosts += " " + short
	}
	if err := os.WriteFile("/etc/hosts", []byte(hosts+"\n"), 0o644); err != nil {
		return err
	}
	return unix.Sethostname([]byte(short))
}
