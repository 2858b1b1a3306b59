package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// resolve returns the packages to unpack as "name=version", sorted: what the
// host's apt would install on an empty system. Asking takes a second, so the
// answer is kept for as long as apt's lists stay the same.
func (c *cache) resolve(ctx context.Context, d Debian) ([]string, error) {
	state, err := aptLists()
	if err != nil {
		return nil, err
	}
	memo := c.path("resolved", key("packages", d.Suite, strings.Join(d.Packages, " "), strings.Join(d.Only, " "), state))
	if b, err := os.ReadFile(memo); err == nil {
		return strings.Fields(string(b)), nil
	}
	if err := checkSuite(d.Suite); err != nil {
		return nil, err
	}
	// With no status file apt takes nothing for installed already.
	args := append([]string{"-o", "Dir::State::status=/dev/null", "-o", "APT::Install-Recommends=false",
		"-o", "APT::Architecture=amd64", "install", "--simulate"}, d.Packages...)
	out, err := run(ctx, "", "apt-get", args...)
	if err != nil {
		return nil, err
	}
	packages := parseSimulation(string(out), d.Only)
	if len(packages) == 0 {
		return nil, fmt.Errorf("apt-get names no packages to install for %q", d.Packages)
	}
	return packages, c.write(memo, []byte(strings.Join(packages, "\n")+"\n"))
}

// parseSimulation reads lines such as
//
//	Inst libc6 (2.36-9+deb12u10 Debian:12.11/stable [amd64]) []
func parseSimulation(out string, only []string) []string {
	var packages []string
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "Inst" || !strings.HasPrefix(f[2], "(") {
			continue
		}
		if len(only) > 0 && !slices.ContainsFunc(only, func(p string) bool { ok, _ := path.Match(p, f[1]); return ok }) {
			continue
		}
		packages = append(packages, f[1]+"="+f[2][1:])
	}
	slices.Sort(packages)
	return packages
}

// unpack returns the files of all packages, downloading those that are not in the
// cache.
func (c *cache) unpack(ctx context.Context, packages []string) (tree, error) {
	var absent []string
	for _, p := range packages {
		if _, err := c.deb(p); err != nil {
			absent = append(absent, p)
		}
	}
	if len(absent) > 0 {
		c.say("  downloading %d Debian packages", len(absent))
		if err := c.download(ctx, absent); err != nil {
			return nil, err
		}
	}
	trees, errs := make([]tree, len(packages)), make([]error, len(packages))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i, p := range packages {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			trees[i], errs[i] = c.unpackOne(ctx, p)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := tree{}
	for _, t := range trees {
		for name, n := range t {
			if all[name].Link == "" {
				all[name] = n
			}
		}
	}
	return all, nil
}

func (c *cache) unpackOne(ctx context.Context, name string) (tree, error) {
	file, err := c.deb(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t := tree{}
	err = t.readTar(out)
	_, _ = io.Copy(io.Discard, out)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("unpack %s: %w", file, err)
	}
	return t, nil
}

// deb finds a package's file. apt writes a colon in a version as %3a.
func (c *cache) deb(pkg string) (string, error) {
	name, version, _ := strings.Cut(pkg, "=")
	files, _ := filepath.Glob(c.path("debs", name+"_"+strings.ReplaceAll(version, ":", "%3a")+"_*.deb"))
	if len(files) != 1 {
		return "", fmt.Errorf("package %s is not in %s", pkg, c.path("debs"))
	}
	return files[0], nil
}

// download lets apt fetch and check packages. It goes into a folder of its own
// first, so that what was cut off is never taken for a package.
func (c *cache) download(ctx context.Context, packages []string) error {
	temp, err := os.MkdirTemp(c.path(), "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if _, err := run(ctx, temp, "apt-get", append([]string{"-q", "download"}, packages...)...); err != nil {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	if err := os.MkdirAll(c.path("debs"), 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(temp)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Rename(filepath.Join(temp, f.Name()), c.path("debs", f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// aptLists names the state of apt's knowledge of the archive.
func aptLists() (string, error) {
	files, err := os.ReadDir("/var/lib/apt/lists")
	if err != nil {
		return "", fmt.Errorf("read apt's lists; images are built on Debian: %w", err)
	}
	sum := sha256.New()
	packages := 0
	for _, f := range files {
		info, err := f.Info()
		if err != nil || f.IsDir() {
			continue
		}
		if strings.Contains(f.Name(), "Packages") {
			packages++
		}
		fmt.Fprintln(sum, f.Name(), info.Size(), info.ModTime().UnixNano())
	}
	if packages == 0 {
		return "", errNoLists
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

var (
	errNoLists = errors.New("apt knows no packages: run apt-get update")
	// errStale is what fails also where the archive has newer versions than apt's
	// lists.
	errStale = errors.New("download Debian packages; perhaps apt-get update helps")
)

// checkSuite refuses to make an image of one release out of another's packages.
func checkSuite(suite string) error {
	b, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
			if name = strings.Trim(name, `"`); name != suite {
				return fmt.Errorf("images are made of the packages of Debian %s, and this host's apt offers those of %s", suite, name)
			}
			return nil
		}
	}
	return fmt.Errorf("images are made of the packages of Debian %s, and this host does not say what it is", suite)
}

// run runs a program and returns its output; its error holds the last lines of what it said.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SOURCE_DATE_EPOCH=315532800")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, fmt.Errorf("%s: %w\n%s", name, err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	return stdout.Bytes(), nil
}
