package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// unpack returns the files of packages of a suite, each with the package that it is
// of, downloading the packages that are not in the cache.
func (c *cache) unpack(ctx context.Context, d Debian, packages []Package) (tree, error) {
	var absent []Package
	for _, p := range packages {
		if _, err := os.Stat(c.deb(p)); err != nil {
			absent = append(absent, p)
		}
	}
	if len(absent) > 0 {
		c.say("  downloading %d Debian packages", len(absent))
		if err := c.download(ctx, d, absent); err != nil {
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
	all.mergeUsr()
	return all, nil
}

// mergeUsr lets /bin and its like be those below /usr, as they are on a Debian that is
// installed, where no package has files there itself.
func (t tree) mergeUsr() {
	for _, dir := range []string{"/bin", "/lib", "/lib64", "/sbin"} {
		there := false
		for name := range t {
			there = there || name == dir || strings.HasPrefix(name, dir+"/")
		}
		if !there {
			t.add(dir, node{Mode: 0o777, Link: "/usr" + dir})
		}
	}
}

func (c *cache) unpackOne(ctx context.Context, p Package) (tree, error) {
	file := c.deb(p)
	sum, err := hashFile(file)
	if err != nil {
		return nil, err
	}
	if sum != p.SHA256 {
		return nil, fmt.Errorf("%s has the digest %s and not that of the lock, %s: remove it", file, sum, p.SHA256)
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
	for name, n := range t {
		n.Package = &p
		t[name] = n
	}
	return t, nil
}

// deb is where a package's file is in the cache.
func (c *cache) deb(p Package) string {
	return c.path("debs", p.Name+"_"+p.Version+"_"+p.SHA256[:min(16, len(p.SHA256))]+".deb")
}

// download lets apt fetch packages and takes those that have the digests of the lock. They
// go into a folder of their own first, so that what was cut off is never taken for a
// package.
func (c *cache) download(ctx context.Context, d Debian, packages []Package) error {
	temp, err := os.MkdirTemp(c.path(), "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := (apt{c, d.Suite, d.arch}).download(ctx, temp, packages); err != nil {
		return err
	}
	if err := os.MkdirAll(c.path("debs"), 0o755); err != nil {
		return err
	}
	for _, p := range packages {
		// apt writes a colon in a version as %3a.
		found, _ := filepath.Glob(filepath.Join(temp, p.Name+"_"+strings.ReplaceAll(p.Version, ":", "%3a")+"_*.deb"))
		if len(found) != 1 {
			return fmt.Errorf("apt-get downloaded %d files for %s", len(found), p)
		}
		sum, err := hashFile(found[0])
		if err != nil {
			return err
		}
		if sum != p.SHA256 {
			return fmt.Errorf("the archive's %s has the digest %s and not that of the lock, %s: make images-lock takes it", p, sum, p.SHA256)
		}
		if err := os.Rename(found[0], c.deb(p)); err != nil {
			return err
		}
	}
	return nil
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
