package supervisor

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The programs of the launcher's image.
const (
	daemonPath = "/usr/sbin/libvirtd"
	qemuPath   = "/usr/bin/qemu-system-x86_64"
	driverDir  = "/usr/lib/x86_64-linux-gnu/libvirt/connection-driver"
)

// daemon is the private libvirt daemon and its folders below dir. The sockets
// of QEMU's monitors are deep in them, so their names are short.
type daemon struct {
	dir    string
	reaper *reaper
	logger *slog.Logger

	mu   sync.Mutex
	last string // the last line that it wrote
}

func (d *daemon) folder(name string) string { return filepath.Join(d.dir, name) }

// socket is what the daemon listens on.
func (d *daemon) socket() string { return d.folder("run/libvirt/libvirt-sock") }

// pidFile is where libvirt writes the process ID of a domain's QEMU.
func (d *daemon) pidFile(domain string) string {
	return d.folder("run/libvirt/qemu/run/" + domain + ".pid")
}

// qemuLog is where a domain's QEMU writes its messages.
func (d *daemon) qemuLog(domain string) string {
	return d.folder("cache/libvirt/qemu/log/" + domain + ".log")
}

// said is the last line that the daemon wrote.
func (d *daemon) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// prepare writes the daemon's configuration and its cache of what QEMU can do.
func (d *daemon) prepare() error {
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
		"libvirtd.conf": fmt.Sprintf("listen_tls = 0\nlisten_tcp = 0\nauth_unix_rw = \"none\"\nlog_outputs = \"3:stderr\"\nhost_uuid = \"%x-%x-%x-%x-%x\"\n", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		// The pod is what confines QEMU; there is no log daemon.
		"qemu.conf": "stdio_handler = \"file\"\ncgroup_controllers = []\nsecurity_driver = \"none\"\nnamespaces = []\n",
	} {
		if err := os.WriteFile(d.folder("conf/libvirt/"+name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return d.warm()
}

// run keeps the daemon running until ctx ends. Guests do not notice its death:
// the next one takes them over.
func (d *daemon) run(ctx context.Context) {
	const soonest, latest, healthy = 50 * time.Millisecond, 5 * time.Second, 10 * time.Second
	wait := soonest
	for ctx.Err() == nil {
		began := time.Now()
		err := d.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > healthy {
			wait = soonest
		}
		d.logger.Warn("the libvirt daemon ended and is started again", "err", err, "said", d.said(), "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, latest)
	}
}

// once runs the daemon from its start to its end, and kills it when ctx ends:
// it keeps nothing in memory that is needed again.
func (d *daemon) once(ctx context.Context) error {
	said, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess(daemonPath, []string{daemonPath}, &os.ProcAttr{
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
	go d.listen(said)
	exited := d.reaper.exited(pid)
	select {
	case s := <-exited:
		return fmt.Errorf("%s %s", daemonPath, ended(s))
	case <-ctx.Done():
		_ = unix.Kill(pid, unix.SIGKILL) // fails if it is dead already
		<-exited
		return nil
	}
}

func (d *daemon) environment() []string {
	env := []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + d.folder("home"),
		"XDG_RUNTIME_DIR=" + d.folder("run"),
		"XDG_CONFIG_HOME=" + d.folder("conf"),
		"XDG_CACHE_HOME=" + d.folder("cache"),
		"XDG_DATA_HOME=" + d.folder("data"),
		"XDG_STATE_HOME=" + d.folder("state"),
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

// listen passes on what the daemon says. Much of it is about what a pod does
// not have, so it is for those who look closer.
func (d *daemon) listen(r io.Reader) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		d.mu.Lock()
		d.last = daemonTime.ReplaceAllString(lines.Text(), "")
		d.mu.Unlock()
		d.logger.Debug("libvirt", "line", lines.Text())
	}
	_, _ = io.Copy(io.Discard, r) // a line too long must not stop the daemon
}
