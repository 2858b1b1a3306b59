package races_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/races"
)

// racy is a program with a race.
const racy = `package main

var n int

func main() {
	done := make(chan bool)
	go func() { n++; close(done) }()
	n++
	<-done
	println("it ended")
}
`

// report is what the race detector says of racy, as the kubelet logs it.
func report(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(racy), 0o644))
	cmd := exec.CommandContext(t.Context(), "go", "run", "-race", file)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOWORK=off", "GOFLAGS=-buildvcs=false")
	said, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	var log strings.Builder
	for line := range strings.Lines(string(said)) {
		log.WriteString("2026-01-01T00:00:00.000000000Z stderr F " + line)
	}
	return log.String()
}

func TestTheReportInALogThatIsRemovedIsFound(t *testing.T) {
	folder := t.TempDir()
	pod := filepath.Join(folder, "ns_pod_uid", "compute")
	require.NoError(t, os.MkdirAll(pod, 0o755))
	log, err := os.Create(filepath.Join(pod, "0.log"))
	require.NoError(t, err)
	quiet := filepath.Join(pod, "1.log")
	require.NoError(t, os.WriteFile(quiet, []byte("2026-01-01T00:00:00.0Z stdout F all is well\n"), 0o644))

	w := races.Watch(func() []string { return []string{folder} })
	time.Sleep(2 * time.Second)
	_, err = log.WriteString(report(t))
	require.NoError(t, errors.Join(err, log.Close(), os.RemoveAll(pod)))

	logs, reports, err := w.Reports()
	require.NoError(t, err)
	require.Equal(t, 2, logs)
	require.Len(t, reports, 1)
	require.Contains(t, reports[0], "0.log:\nWARNING: DATA RACE\n")
	require.Contains(t, reports[0], "main.main.func1()")
	require.NotContains(t, reports[0], "it ended")
}

func TestNoReportIsFoundWhereThereIsNone(t *testing.T) {
	logs, reports, err := races.Watch(func() []string { return []string{t.TempDir()} }).Reports()
	require.NoError(t, err)
	require.Zero(t, logs)
	require.Empty(t, reports)
}
