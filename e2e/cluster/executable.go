package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"

	"github.com/podvisor/podvisor/e2e/toolchain"
)

// mainPackage is the program that can be process 1.
const mainPackage = "github.com/podvisor/podvisor/e2e/cmd/podvisor-cluster"

// executable returns the program that is to be process 1: this one, if it can
// be, else it is built, which takes a second when nothing has changed.
func (c Config) executable(ctx context.Context, s *steps) (string, error) {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path == mainPackage {
		return "/proc/self/exe", nil
	}
	source, err := toolchain.Source()
	if err != nil {
		return "", err
	}
	s.print("building %s", mainPackage)
	bin := filepath.Join(c.Dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(bin, "podvisor-cluster")
	dir, err := os.MkdirTemp(bin, "build-") // another cluster may be starting
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	tmp := filepath.Join(dir, "podvisor-cluster")
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", tmp, mainPackage)
	cmd.Dir = filepath.Dir(source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", mainPackage, err, out)
	}
	// By a rename, because a cluster that runs may be executing the old file.
	return path, os.Rename(tmp, path)
}
