package process

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// DaemonPath is the libvirt daemon of the launcher's image.
const DaemonPath = "/usr/sbin/libvirtd"

// QEMUPath is the QEMU of the launcher's image for guests of an architecture, as libvirt
// names it.
func QEMUPath(arch string) string { return "/usr/bin/qemu-system-" + arch }

// Arch is the architecture of this host, as libvirt names it.
func Arch() string {
	if runtime.GOARCH == "amd64" {
		return "x86_64"
	}
	return "aarch64"
}

// driver is libvirt's driver for QEMU, where Debian has it.
func driver() string {
	return "/usr/lib/" + Arch() + "-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so"
}

// Config is what a [Daemon] needs.
type Config struct {
	// Dir is the folder of everything that the daemon writes. The sockets of QEMU's
	// monitors are deep in it, so its path must be short. Required.
	Dir string
	// Reaper reaps the daemon. It must run. Required.
	Reaper *Reaper
	// Logger logs the daemon's ends, and its output at debug level. Nil: nothing is
	// logged.
	Logger *slog.Logger
}

// Daemon is the private libvirt daemon of a launcher. Its methods may be called
// from any goroutine.
type Daemon struct {
	config Config

	mu      sync.Mutex
	output  string    // the last line that it wrote
	failure string    // how it ended last
	pid     int       // of the one that runs; 0: none does
	since   time.Time // when that one was started
	killed  bool      // it was, by Kill
}

// NewDaemon returns a daemon that does not run yet.
func NewDaemon(c Config) *Daemon {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Daemon{config: c}
}

func (d *Daemon) folder(name string) string { return filepath.Join(d.config.Dir, name) }

// Socket is what the daemon listens on.
func (d *Daemon) Socket() string { return d.folder("run/libvirt/libvirt-sock") }

// Output is the last line that the daemon wrote.
func (d *Daemon) Output() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.output
}

// healthy is how long a daemon runs that has started well.
const healthy = 10 * time.Second

// Failure says how the daemon ended last. It is the same when the same happens
// again. Empty: it did not end yet but by Kill, or the next one has started well.
func (d *Daemon) Failure() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pid != 0 && time.Since(d.since) > healthy {
		return ""
	}
	return d.failure
}

// Kill kills the daemon that runs, if one does, also one that is stopped. Run starts
// the next one, which takes the domains over.
func (d *Daemon) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pid != 0 {
		d.killed = true
		_ = unix.Kill(d.pid, unix.SIGKILL) // fails if it is dead already
	}
}

// runs notes the process of the daemon.
func (d *Daemon) runs(pid int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pid, d.since = pid, time.Now()
}

// Prepare writes the daemon's configuration and its record of what QEMU can do.
func (d *Daemon) Prepare() error {
	for _, name := range []string{"home", "run", "conf/libvirt", "cache/libvirt", "data", "state"} {
		if err := os.MkdirAll(d.folder(name), 0o700); err != nil {
			return err
		}
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	for name, text := range map[string]string{
		// Two daemons with one host UUID would refuse to migrate to each other.
		"libvirtd.conf": fmt.Sprintf("listen_tls = 0\nlisten_tcp = 0\nauth_unix_rw = \"none\"\nlog_outputs = \"3:stderr\"\nhost_uuid = \"%x-%x-%x-%x-%x\"\n",
			id[0:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		// The pod is what confines QEMU; there is no log daemon.
		"qemu.conf": "stdio_handler = \"file\"\ncgroup_controllers = []\nsecurity_driver = \"none\"\nnamespaces = []\n",
	} {
		if err := os.WriteFile(d.folder("conf/libvirt/"+name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return d.warm()
}

// Run keeps the daemon running until ctx ends, with a back-off while it ends soon
// after each start. Guests go on without it: the next one takes their domains
// over.
func (d *Daemon) Run(ctx context.Context) {
	const soonest, latest = 50 * time.Millisecond, 5 * time.Second
	wait := soonest
	for ctx.Err() == nil {
		began := time.Now()
		err := d.once(ctx)
		if ctx.Err() != nil {
			return
		}
		d.ended(err)
		if time.Since(began) > healthy {
			wait = soonest
		}
		d.config.Logger.Warn("the libvirt daemon ended and is started again", "cause", cmp.Or(d.Failure(), "it was killed, since it did not answer"), "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, latest)
	}
}

// ended notes how the daemon ended.
func (d *Daemon) ended(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	killed := d.killed
	if d.killed, d.failure = false, ""; killed {
		return
	}
	d.failure = err.Error()
	if d.output != "" {
		d.failure += fmt.Sprintf("; its last output is %q", d.output)
	}
}

// drain is how long the output of a daemon that has ended is waited for: a process
// that it started may still hold the pipe.
const drain = 100 * time.Millisecond

// once runs the daemon from its start to its end, and kills it when ctx ends:
// it keeps nothing in memory that is needed again.
func (d *Daemon) once(ctx context.Context) error {
	output, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer output.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess(DaemonPath, []string{DaemonPath}, &os.ProcAttr{
		Env:   d.environment(),
		Files: []*os.File{null, write, write},
		Sys:   &unix.SysProcAttr{Setsid: true},
	})
	write.Close()
	if err != nil {
		return err
	}
	pid := p.Pid
	if err := p.Release(); err != nil { // the reaper waits for it
		return err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		d.log(output)
	}()
	exited := d.config.Reaper.Exited(pid)
	d.runs(pid)
	defer d.clear(pid)
	defer d.runs(0)
	select {
	case s := <-exited:
		select {
		case <-read:
		case <-time.After(drain):
		}
		return fmt.Errorf("%s %s", DaemonPath, Ended(s))
	case <-ctx.Done():
		_ = unix.Kill(pid, unix.SIGKILL) // fails if it is dead already
		<-exited
		return nil
	}
}

func (d *Daemon) environment() []string {
	env := []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + d.folder("home"),
		"XDG_RUNTIME_DIR=" + d.folder("run"),
		"XDG_CONFIG_HOME=" + d.folder("conf"),
		"XDG_CACHE_HOME=" + d.folder("cache"),
		"XDG_DATA_HOME=" + d.folder("data"),
		"XDG_STATE_HOME=" + d.folder("state"),
		// The workers of the daemon answer one client, in turn. A heap for each of them
		// would keep megabytes that the others cannot use.
		"MALLOC_ARENA_MAX=1",
		// libvirt reads what processors and QEMU can do into trees of small parts and frees
		// them. Parts that are kept for the next use of a thread would hold the pages
		// around them: megabytes.
		"GLIBC_TUNABLES=glibc.malloc.tcache_count=0",
	}
	// Where more drivers are installed than the launcher needs, this leaves them
	// out.
	if dir, ok := os.LookupEnv("LIBVIRT_DRIVER_DIR"); ok {
		env = append(env, "LIBVIRT_DRIVER_DIR="+dir)
	}
	return env
}

// daemonTime is the time and the thread before each line of the daemon's. With
// them the same message would be another each time.
var daemonTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\+\d{4}: \d+: `)

// ofAgent matches what comes before the message where a line of the daemon's is about
// the guest's agent. The message quotes the agent, which may repeat the passwords that it
// was given.
var ofAgent = regexp.MustCompile(`^(.*? : (?:qemuAgent|virJSON)\w*:\d+ : )`)

// log logs the daemon's output to its end. Much of it is about what a pod does not
// have, so it is logged at debug level. What the guest's agent said is left out.
func (d *Daemon) log(r io.Reader) {
	lines, left := bufio.NewScanner(r), false
	for lines.Scan() {
		line := lines.Text()
		begins := daemonTime.MatchString(line)
		if left && !begins {
			continue // the message goes on
		}
		about := ofAgent.FindString(line)
		if left = begins && about != ""; left {
			line = about + "the answer of the guest's agent is left out"
		}
		d.mu.Lock()
		d.output = daemonTime.ReplaceAllString(line, "")
		d.mu.Unlock()
		d.config.Logger.Debug("libvirt", "line", line)
	}
	_, _ = io.Copy(io.Discard, r) // a line too long must not stop the daemon
}
