package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestVMIsAreListed(t *testing.T) {
	running := vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.PhaseRunning))
	running.Status.NodeName = "n1"
	var out bytes.Buffer
	require.NoError(t, list(t.Context(), &out, fake.New(running, vmitest.New()).Config(), "default"))
	require.Equal(t, "default/testvmi  \ndefault/web Running n1\n", out.String())
}

// figures are what a program costs at build time.
type figures struct {
	// required are the modules that go list -m all names, linked those that are
	// part of the binary, and bytes the size of the stripped binary.
	required, linked int
	bytes            int64
}

// measure builds the program in dir.
func measure(t *testing.T, dir string) figures {
	t.Helper()
	run := func(args ...string) []byte {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
		c.Stderr = os.Stderr
		out, err := c.Output()
		require.NoError(t, err, "go %v in %s", args, dir)
		return out
	}
	bin := filepath.Join(t.TempDir(), "program")
	run("build", "-trimpath", "-ldflags=-s -w", "-o", bin, ".")
	info, err := buildinfo.ReadFile(bin)
	require.NoError(t, err)
	size, err := os.Stat(bin)
	require.NoError(t, err)
	return figures{bytes.Count(run("list", "-m", "all"), []byte("\n")), len(info.Deps), size.Size()}
}

// The figures of the example are those of any operator that imports vmi and
// vmi/client. Both programs print the same; the one in testdata/plain is client-go,
// core/v1 and nothing else.
func TestTheImporterStaysSmall(t *testing.T) {
	ours := measure(t, ".")
	plain := measure(t, "testdata/plain")
	for _, f := range []struct {
		name string
		figures
	}{{"vmi/client", ours}, {"client-go and core/v1", plain}} {
		t.Logf("%-21s %3d modules required, %2d linked, %5.1f MB", f.name, f.required, f.linked, float64(f.bytes)/1e6)
	}
	require.LessOrEqual(t, ours.required, 105, "modules in go list -m all")
	require.LessOrEqual(t, ours.linked, plain.linked+2, "modules linked beyond client-go and core/v1")
	require.LessOrEqual(t, ours.bytes, plain.bytes*105/100, "bytes of the stripped binary, at most 5 %% beyond client-go and core/v1")
}
