package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/e2e/debian"
	"github.com/podvisor/podvisor/e2e/progress"
)

// Config says where to build.
type Config struct {
	// Dir is the cache; empty means podvisor/toolchain in the user's cache folder.
	Dir string
	// Out gets the progress of a build; nil means that none is written.
	Out io.Writer
}

// Tools says where the programs are. Everything in it is read-only and may be
// used by several clusters at once.
type Tools struct {
	// Version is the version of Kubernetes.
	Version string
	// Kubernetes is the folder with kube-apiserver, kubelet, kubectl, etcd, coredns, ….
	Kubernetes string
	// Runtime is the folder with containerd, ctr, runc and, in cni/, the CNI plugins.
	Runtime string
	// CSI is the folder with the program csi and snapshot-kinds.json, the definitions of
	// the kinds of snapshots as a list of objects and the paths to create them at.
	CSI string
	// Policy is the folder with the program policy, which makes NetworkPolicies hold on a node.
	Policy string
	// Pause is the archive with the image [PauseImage].
	Pause string
}

// Build makes what is missing in the cache and returns where everything is.
func Build(ctx context.Context, c Config) (Tools, error) {
	c, err := c.complete()
	if err != nil {
		return Tools{}, err
	}
	source, err := Source()
	if err != nil {
		return Tools{}, err
	}
	var tools Tools
	for _, make := range parts {
		p, err := make.part(source)
		if err != nil {
			return Tools{}, err
		}
		dir, err := c.build(ctx, p)
		if err != nil {
			return Tools{}, fmt.Errorf("build %s %s: %w", p.name, p.version, err)
		}
		make.store(&tools, p, dir)
	}
	return tools, nil
}

// parts are what is built, and where the result is noted.
var parts = []struct {
	part  func(string) (part, error)
	store func(t *Tools, p part, dir string)
}{
	{kubernetes, func(t *Tools, p part, dir string) { t.Version, t.Kubernetes = p.version, dir }},
	{containers, func(t *Tools, _ part, dir string) { t.Runtime = dir }},
	{storage, func(t *Tools, _ part, dir string) { t.CSI = dir }},
	{policies, func(t *Tools, _ part, dir string) { t.Policy = dir }},
	{pause, func(t *Tools, _ part, dir string) { t.Pause = filepath.Join(dir, "pause.tar") }},
}

// Unbuilt names the parts that [Build] would have to make, and the Debian packages that it
// needs for them.
func Unbuilt(c Config) (names, packages []string, err error) {
	c, err = c.complete()
	if err != nil {
		return nil, nil, err
	}
	source, err := Source()
	if err != nil {
		return nil, nil, err
	}
	for _, make := range parts {
		p, err := make.part(source)
		if err != nil {
			return nil, nil, err
		}
		key, err := p.key()
		if err != nil {
			return nil, nil, err
		}
		if _, err := os.Stat(filepath.Join(c.Dir, key)); err != nil {
			names, packages = append(names, p.name), append(packages, p.packages...)
		}
	}
	return names, packages, nil
}

// complete fills in what is empty.
func (c Config) complete() (Config, error) {
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return c, fmt.Errorf("find a place for the toolchain: %w", err)
		}
		c.Dir = filepath.Join(cache, "podvisor", "toolchain")
	}
	return c, nil
}

// build returns the part's folder, and makes it if it is not there.
func (c Config) build(ctx context.Context, p part) (string, error) {
	key, err := p.key()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(c.Dir, key)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := c.lock(ctx, p.name)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil // another process has built it meanwhile
	}
	if err := debian.Ensure(ctx, c.Out, p.packages...); err != nil {
		return "", err
	}
	tmp, err := c.temporary(p)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := c.buildIn(ctx, p, tmp); err != nil {
		return "", err
	}
	return dir, os.Rename(tmp, dir)
}

// temporary makes the folder to build in and removes those of earlier builds,
// which under the lock can only be the remains of killed ones. It is a new name
// every time, because the go command of a killed build may still be writing.
func (c Config) temporary(p part) (string, error) {
	remains, err := filepath.Glob(filepath.Join(c.Dir, p.name+".tmp*"))
	if err != nil {
		return "", err
	}
	for _, dir := range remains {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	tmp, err := os.MkdirTemp(c.Dir, p.name+".tmp")
	if err != nil {
		return "", err
	}
	return tmp, os.Chmod(tmp, 0o755)
}

// buildIn builds the part into the folder tmp.
func (c Config) buildIn(ctx context.Context, p part, tmp string) error {
	shown := progress.New(p.name + " " + p.version)
	shown.Show(c.Out)
	defer shown.Stop()
	total, err := count(ctx, p, shown)
	if err != nil {
		return err
	}
	shown.Begin(total)
	for _, program := range p.programs {
		if err := run(ctx, p.dir, program, program.args(filepath.Join(tmp, program.output)), shown); err != nil {
			return fmt.Errorf("%s: %w", program.output, err)
		}
	}
	for name, target := range p.links {
		if err := os.Symlink(target, filepath.Join(tmp, name)); err != nil {
			return err
		}
	}
	if p.finish != nil {
		return p.finish(tmp)
	}
	return nil
}

// count returns how many packages the part has. It downloads the modules.
func count(ctx context.Context, p part, shown *progress.Build) (int, error) {
	args := []string{"list", "-deps", "-f", "{{.ImportPath}}"}
	pkgs := map[string]bool{}
	for _, program := range p.programs {
		pkgs[program.pkg] = true
	}
	for pkg := range pkgs {
		args = append(args, pkg)
	}
	var list lineCounter
	if err := command(ctx, p.dir, program{}, args, &list, shown); err != nil {
		return 0, err
	}
	return list.lines, nil
}

// run runs go build and counts every package that it compiles.
func run(ctx context.Context, dir string, p program, args []string, shown *progress.Build) error {
	return command(ctx, dir, p, args, shown, shown)
}

// command runs the go command. Its error carries what the command said.
func command(ctx context.Context, dir string, p program, args []string, stdout io.Writer, shown *progress.Build) error {
	cgo := "CGO_ENABLED=0"
	if p.cgo {
		cgo = "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS=", "GOARCH=", cgo)
	cmd.Stdout, cmd.Stderr = stdout, shown
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go %s: %w\n%s", args[0], err, strings.Join(shown.Said(), "\n"))
	}
	return nil
}

// lock takes the part's lock, and prints a line when it has to wait for it.
func (c Config) lock(ctx context.Context, name string) (func(), error) {
	f, err := os.OpenFile(filepath.Join(c.Dir, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for printed := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if !printed {
			fmt.Fprintf(c.Out, "  another process is building %s: waiting for it\n", name)
			printed = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// lineCounter counts the lines written to it.
type lineCounter struct{ lines int }

func (c *lineCounter) Write(b []byte) (int, error) {
	c.lines += bytes.Count(b, []byte{'\n'})
	return len(b), nil
}
