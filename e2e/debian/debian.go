package debian

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// MissingError says which packages are not there and why they were not installed.
type MissingError struct {
	Packages []string
	Reason   string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("missing Debian packages: %s (%s); install them with: apt-get install --no-install-recommends %[1]s",
		strings.Join(e.Packages, " "), e.Reason)
}

// Ensure makes the packages be there: it installs the ones that are missing, as
// root, and writes what apt-get says to out. If nothing is missing it writes
// nothing and takes a few milliseconds. Otherwise the error is a [*MissingError].
func Ensure(ctx context.Context, out io.Writer, packages ...string) error {
	return ensure(ctx, out, nil, packages)
}

// EnsureBySudo is Ensure where the user of a terminal waits for it: without root it
// installs by sudo, which may ask for a password.
func EnsureBySudo(ctx context.Context, out io.Writer, packages ...string) error {
	if os.Geteuid() == 0 {
		return ensure(ctx, out, nil, packages)
	}
	return ensure(ctx, out, func() (string, error) { return exec.LookPath("sudo") }, packages)
}

// ensure installs as this user, or by the program that find names.
func ensure(ctx context.Context, out io.Writer, find func() (string, error), packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	lack, err := Missing(ctx, packages...)
	if err != nil {
		return &MissingError{Packages: packages, Reason: err.Error()}
	}
	if len(lack) == 0 {
		return nil
	}
	a := apt{out: out}
	switch {
	case find != nil:
		if err := a.bySudo(ctx, find); err != nil {
			return &MissingError{Packages: lack, Reason: "installing needs root: " + err.Error()}
		}
	case os.Geteuid() != 0:
		return &MissingError{Packages: lack, Reason: "installing needs root"}
	}
	fmt.Fprintf(out, "installing Debian packages: %s\n", strings.Join(lack, " "))
	err = a.installAll(ctx, lack)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &MissingError{Packages: lack, Reason: err.Error()}
	}
	return nil
}

// Missing returns the packages that are not installed, in the order asked.
func Missing(ctx context.Context, packages ...string) ([]string, error) {
	args := append([]string{"--showformat", "${Package} ${db:Status-Status}\n", "--show"}, packages...)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "dpkg-query", args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// Exit status 1 only says that a package is not known, which the output says too.
	if err := cmd.Run(); err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) {
		return nil, fmt.Errorf("run dpkg-query: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	have := installed(stdout.String())
	return slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		name, _, _ := strings.Cut(p, ":")
		return slices.Contains(have, name)
	}), nil
}

// installed reads dpkg-query's lines of package and status.
func installed(list string) []string {
	var names []string
	for line := range strings.Lines(list) {
		if name, status, ok := strings.Cut(strings.TrimSpace(line), " "); ok && status == "installed" {
			names = append(names, name)
		}
	}
	return names
}

// apt runs apt-get.
type apt struct {
	out io.Writer
	by  []string // the command that gives it root; empty: this process has it
}

// bySudo lets sudo ask for the password now, while this process has the terminal.
func (a *apt) bySudo(ctx context.Context, find func() (string, error)) error {
	sudo, err := find()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, sudo, "-v")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, a.out, a.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("sudo: %w", err)
	}
	a.by = []string{sudo, "-n"}
	return nil
}

// installAll installs the packages. The lists of packages may be absent, as in a fresh
// container, or older than the archive.
func (a *apt) installAll(ctx context.Context, packages []string) error {
	if a.knows(ctx, packages) {
		if err := a.install(ctx, packages); err == nil || ctx.Err() != nil {
			return err
		}
	}
	if err := a.run(ctx, "update"); err != nil {
		return err
	}
	return a.install(ctx, packages)
}

// knows reports whether the lists of packages name all of the packages.
func (a *apt) knows(ctx context.Context, packages []string) bool {
	cmd := a.command(ctx, append([]string{"install", "--simulate", "--no-install-recommends"}, packages...))
	cmd.Stdout, cmd.Stderr = nil, nil
	return cmd.Run() == nil
}

// install downloads the packages, which may be interrupted, and then installs them,
// which may not: dpkg that is killed half way leaves broken packages behind.
func (a *apt) install(ctx context.Context, packages []string) error {
	args := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	if err := a.run(ctx, append(args, "--download-only")...); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { fmt.Fprintln(a.out, "waiting until the packages are installed") })()
	// The keys of a terminal interrupt processes of its own group.
	cmd := a.command(context.WithoutCancel(ctx), args)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return run(cmd, args)
}

func (a *apt) run(ctx context.Context, args ...string) error {
	return run(a.command(ctx, args), args)
}

// command is apt-get without questions. It waits for another apt that holds the lock
// instead of failing.
func (a *apt) command(ctx context.Context, args []string) *exec.Cmd {
	line := append(slices.Clone(a.by), "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get", "-q", "-o", "DPkg::Lock::Timeout=300")
	line = append(line, args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = a.out, a.out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	return cmd
}

func run(cmd *exec.Cmd, args []string) error {
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w", args[0], err)
	}
	return nil
}
