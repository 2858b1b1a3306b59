package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// apt asks Debian's archive of one suite and architecture, from the sources in
// images/suites, with lists of its own: what the host has installed, its release and its
// sources do not matter.
type apt struct {
	c           *cache
	suite, arch string
}

// sources is the file with the sources of a suite.
func (c *cache) sources(suite string) string {
	return filepath.Join(c.repo, "images", "suites", suite+".sources")
}

// run runs a program of apt in a folder; empty is that of the process.
func (a apt) run(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	own := a.c.path("apt", named(a.suite, a.arch))
	for _, d := range []string{"lists/partial", "cache/archives/partial", "none"} {
		if err := os.MkdirAll(filepath.Join(own, d), 0o755); err != nil {
			return nil, err
		}
	}
	options := []string{"-q"}
	for _, o := range []string{
		"Dir::Etc::sourcelist=" + a.c.sources(a.suite), "Dir::Etc::sourceparts=" + own + "/none",
		"Dir::Etc::preferences=/dev/null", "Dir::Etc::preferencesparts=" + own + "/none",
		"Dir::State::lists=" + own + "/lists", "Dir::Cache=" + own + "/cache",
		// With no status file apt takes nothing for installed already.
		"Dir::State::status=/dev/null",
		"APT::Architecture=" + a.arch, "APT::Architectures=" + a.arch, "APT::Install-Recommends=false", "APT::Sandbox::User=root", "Acquire::Languages=none",
	} {
		options = append(options, "-o", o)
	}
	out, err := run(ctx, dir, program, append(options, args...)...)
	if err != nil {
		return nil, fmt.Errorf("ask the archive of Debian %s: %w", a.suite, err)
	}
	return out, nil
}

// update gets the newest lists.
func (a apt) update(ctx context.Context) error {
	if _, err := os.Stat(a.c.sources(a.suite)); err != nil {
		return fmt.Errorf("sources of Debian %s: %w", a.suite, err)
	}
	a.c.say("  getting the lists of Debian %s for %s", a.suite, a.arch)
	_, err := a.run(ctx, "", "apt-get", "update")
	return err
}

// updated gets lists where there are none.
func (a apt) updated(ctx context.Context) error {
	if lists, _ := filepath.Glob(a.c.path("apt", named(a.suite, a.arch), "lists", "*_Packages*")); len(lists) > 0 {
		return nil
	}
	return a.update(ctx)
}

// resolve returns the newest packages that a declaration stands for, sorted: what apt
// would install on an empty system.
func (a apt) resolve(ctx context.Context, d Debian) ([]Package, error) {
	out, err := a.run(ctx, "", "apt-get", append([]string{"install", "--simulate"}, d.Packages...)...)
	if err != nil {
		return nil, err
	}
	names := parseSimulation(string(out), d.Only)
	if len(names) == 0 {
		return nil, fmt.Errorf("apt-get names no packages to install for %q", d.Packages)
	}
	if out, err = a.run(ctx, "", "apt-get", append([]string{"download", "--print-uris"}, names...)...); err != nil {
		return nil, err
	}
	packages, err := parseURIs(string(out))
	if err == nil && len(packages) != len(names) {
		err = fmt.Errorf("apt-get names %d files for %d packages", len(packages), len(names))
	}
	return packages, err
}

// parseSimulation reads lines such as
//
//	Inst libc6 (2.36-9+deb12u10 Debian:12.11/stable [amd64]) []
//
// as NAME=VERSION.
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

// uri is a line such as
//
//	'http://…/libc6_2.41-12%2bdeb13u5_amd64.deb' libc6_2.41-12+deb13u5_amd64.deb 2850108 SHA256:b59b…
var uri = regexp.MustCompile(`^'[^']*' ([a-z0-9.+-]+)_([^_]+)_[a-z0-9]+\.deb \d+ SHA256:([0-9a-f]{64})$`)

// parseURIs reads what apt-get says that it would download.
func parseURIs(out string) ([]Package, error) {
	var packages []Package
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "'") {
			continue
		}
		m := uri.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			return nil, fmt.Errorf("apt-get names no file with its digest: %q", line)
		}
		packages = append(packages, Package{Name: m[1], Version: strings.ReplaceAll(m[2], "%3a", ":"), SHA256: m[3]})
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return packages, nil
}

// errSuperseded is a version that the archive does not have any more.
var errSuperseded = errors.New("superseded in the archive")

// download gets packages into a folder. Where the archive has another version than the
// one that is asked for the error is an errSuperseded, which names all of them.
func (a apt) download(ctx context.Context, dir string, packages []Package) error {
	if err := a.updated(ctx); err != nil {
		return err
	}
	args := []string{"download"}
	for _, p := range packages {
		args = append(args, p.String())
	}
	_, err := a.run(ctx, dir, "apt-get", args...)
	if err == nil {
		return nil
	}
	// The lists may be older than the archive, which then has some files no longer.
	if err := a.update(ctx); err != nil {
		return err
	}
	if _, again := a.run(ctx, dir, "apt-get", args...); again == nil {
		return nil
	}
	var gone []string
	for _, p := range packages {
		if _, missing := a.run(ctx, "", "apt-get", "download", "--print-uris", p.String()); missing != nil {
			gone = append(gone, p.String())
		}
	}
	if len(gone) == 0 {
		return err
	}
	return fmt.Errorf("Debian %s: %w: %s", a.suite, errSuperseded, strings.Join(gone, " "))
}
