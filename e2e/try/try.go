package try

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/podvisor/podvisor/e2e/debian"
	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/progress"
)

// Config says what is tried.
type Config struct {
	// Root is the folder of the repository. Required.
	Root string
	// File is the manifest. It has one VMI, or a VM or replica set. Required.
	File string
	// Args are further flags of run-vmi.
	Args []string
	// Out gets the progress. The guest's console is on the standard input and output of
	// this process. Required.
	Out io.Writer
}

// packages are what the guest runs on. images.Tools are what makes its disk.
var packages = []string{"libvirt-daemon", "libvirt-daemon-driver-qemu", "passt", "qemu-system-x86"}

// guests are the images of this repository that have a guest.
var guests = []string{"demo-guest", "debian-guest"}

// ErrEnded is a guest that could not run, crashed or was switched off. What happened is
// on the terminal.
var ErrEnded = errors.New("the guest did not power off by itself")

// Run boots the VMI and returns when its guest is off. When ctx is done the guest is asked
// to power off.
func Run(ctx context.Context, c Config) error {
	manifest, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) { fmt.Fprintf(c.Out, "== "+format+"\n", args...) }
	say("Install and build what is missing: the first time this takes up to three minutes, later a second or two")
	b := c.build(ctx)
	defer func() { _, _ = b.wait(io.Discard) }() // its error is returned below
	if err := debian.EnsureBySudo(ctx, c.Out, append(images.Tools(), packages...)...); err != nil {
		return err
	}
	args, err := c.images(ctx, string(manifest))
	if err != nil {
		return err
	}
	program, err := b.wait(c.Out)
	if err != nil {
		return err
	}
	say("Boot %s. Its console follows: Enter starts a shell in the demo guest, ^] powers the guest off", filepath.Base(c.File))
	if err := boot(ctx, program, manifest, append(args, c.Args...)); err != nil {
		return err
	}
	say("The guest is off, and nothing of it is left")
	return nil
}

// images builds the images of the repository that the manifest names, and returns the
// flags of run-vmi for them.
func (c Config) images(ctx context.Context, manifest string) ([]string, error) {
	var names []string
	for _, name := range guests {
		if strings.Contains(manifest, images.Reference(name)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	built, err := images.Build(ctx, images.Config{Root: c.Root, Names: names, Out: c.Out})
	if err != nil {
		return nil, err
	}
	var args []string
	for _, b := range built {
		args = append(args, "-image", b.Reference+"="+b.Tar)
	}
	return args, nil
}

// build is run-vmi while it is built.
type build struct {
	path  string
	shown *progress.Build
	ended chan struct{}
	err   error
}

// build begins to build run-vmi.
func (c Config) build(ctx context.Context) *build {
	b := &build{shown: progress.New("run-vmi"), ended: make(chan struct{})}
	go func() {
		defer close(b.ended)
		b.err = b.run(ctx, c.Root)
	}()
	return b
}

func (b *build) run(ctx context.Context, root string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	b.path = filepath.Join(cache, "podvisor", "try", "run-vmi")
	const program = "./examples/run-vmi"
	var list strings.Builder
	for _, step := range []struct {
		out  io.Writer
		args []string
	}{
		{&list, []string{"list", "-deps", program}},
		{b.shown, []string{"build", "-v", "-ldflags=-s -w", "-o", b.path, program}},
	} {
		cmd := exec.CommandContext(ctx, "go", step.args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, step.out, b.shown
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 5 * time.Second
		if err := cmd.Run(); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("build run-vmi: go %s: %w\n%s", step.args[0], err, strings.Join(b.shown.Said(), "\n")))
		}
		b.shown.Begin(strings.Count(list.String(), "\n"))
	}
	return nil
}

// wait shows the build until it ends, if it has not yet, and returns the path of the
// program.
func (b *build) wait(out io.Writer) (string, error) {
	select {
	case <-b.ended:
	default:
		b.shown.Show(out)
		<-b.ended
		b.shown.Stop()
	}
	return b.path, b.err
}

// boot runs the program with the manifest until the guest is off.
func boot(ctx context.Context, program string, manifest []byte, args []string) (err error) {
	// The names of libvirt's sockets leave room for 32 bytes, and TMPDIR may have more.
	dir, err := os.MkdirTemp("/tmp", "try")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	u, err := user()
	if err != nil {
		return err
	}
	own := filepath.Join(dir, "run-vmi")
	file := filepath.Join(dir, "vmi.yaml")
	if err := errors.Join(copyFile(program, own, 0o755), os.WriteFile(file, manifest, 0o644)); err != nil {
		return err
	}
	for n, a := range args {
		reference, archive, ok := strings.Cut(a, "=")
		if n == 0 || args[n-1] != "-image" || !ok || u == nil {
			continue
		}
		// The user may not open what is in the folders of root.
		to := filepath.Join(dir, fmt.Sprintf("image%d.tar", n))
		if err := copyFile(archive, to, 0o644); err != nil {
			return err
		}
		args[n] = reference + "=" + to
	}
	if u != nil {
		if err := os.Chown(dir, int(u.Uid), int(u.Gid)); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, own, append(args, file)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() > 0 {
			return ErrEnded
		}
		return err
	}
	return nil
}

// unprivileged is the user without rights that every distribution has.
const unprivileged = 65534

// user is the user that libvirt and QEMU run as where this process is root. Otherwise it is
// nil: they run as the user of this process. It is in the group of /dev/kvm where that
// group may open it.
func user() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	c := &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
	info, err := os.Stat("/dev/kvm")
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Gid != 0 && info.Mode().Perm()&0o060 == 0o060 {
		c.Groups = []uint32{s.Gid}
	}
	return c, nil
}

// copyFile copies a file.
func copyFile(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
