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
	if len(packages) == 0 {
		return nil
	}
	lack, err := missing(ctx, packages)
	if err != nil {
		return &MissingError{Packages: packages, Reason: err.Error()}
	}
	if len(lack) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return &MissingError{Packages: lack, Reason: "installing needs root"}
	}
	fmt.Fprintf(out, "installing Debian packages: %s\n", strings.Join(lack, " "))
	if err := install(ctx, out, lack); err == nil {
		return nil
	}
	// The lists may be absent (a fresh container) or older than the archive.
	if err := apt(ctx, out, "update"); err != nil {
		return &MissingError{Packages: lack, Reason: err.Error()}
	}
	if err := install(ctx, out, lack); err != nil {
		return &MissingError{Packages: lack, Reason: err.Error()}
	}
	return nil
}

// missing returns the packages that are not installed, in the order asked.
func missing(ctx context.Context, packages []string) ([]string, error) {
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

func install(ctx context.Context, out io.Writer, packages []string) error {
	return apt(ctx, out, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...)
}

// apt runs apt-get without questions, and waits for another apt that holds the
// lock instead of failing.
func apt(ctx context.Context, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = out, out
	// Killing dpkg half way leaves a broken package behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w", args[0], err)
	}
	return nil
}
