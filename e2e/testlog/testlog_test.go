package testlog_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/testlog"
)

// goTest makes a module with the files and returns what `go test -json` writes of it.
func goTest(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.com/m\n\ngo 1.26\n"
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "-vet=off", "-count=1", "-p=1", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	out, err := cmd.Output()
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(out)
}

// seconds is how long a test took, as go test prints it: what that is says the host.
var seconds = regexp.MustCompile(`\(\d+\.\d\ds\)`)

func TestTheTestsOfAModuleArePrinted(t *testing.T) {
	events := goTest(t, map[string]string{
		"bad/bad_test.go": `package bad
import ("fmt"; "testing")
func TestGood(t *testing.T) { t.Parallel(); fmt.Println("written by the good one"); t.Log("logged by the good one") }
func TestBad(t *testing.T) { t.Parallel(); t.Run("sub", func(t *testing.T) { fmt.Println("written"); t.Error("the reason") }) }
`,
		"broken/broken_test.go": "package broken\nimport \"testing\"\nfunc TestX(t *testing.T) { undefined() }\n",
		"good/good_test.go":     "package good\nimport (\"fmt\"; \"testing\")\nfunc TestFine(t *testing.T) { fmt.Println(\"chatter\") }\n",
		"none/none.go":          "package none\n",
		"panics/panics_test.go": "package panics\nimport \"testing\"\nfunc TestPanics(t *testing.T) { panic(\"lost\") }\n",
	})
	var out, times bytes.Buffer
	require.NoError(t, testlog.Print(strings.NewReader(events), &out, &times))
	text := seconds.ReplaceAllString(out.String(), "(0.00s)")
	for _, want := range []string{
		"--- FAIL: TestBad (0.00s)\n--- FAIL: TestBad/sub (0.00s)\nwritten\n", "bad_test.go:4: the reason\n", "\nFAIL\texample.com/m/bad\t",
		"undefined: undefined", "FAIL\texample.com/m/broken [build failed]\n",
		"ok  \texample.com/m/good\t", "?   \texample.com/m/none\t[no test files]\n",
		"--- FAIL: TestPanics (0.00s)\n", "panic: lost", "FAIL\texample.com/m/panics\t",
	} {
		require.Contains(t, text, want)
	}
	for _, not := range []string{"good one", "chatter", "=== ", "PASS"} {
		require.NotContains(t, text, not)
	}
	require.Regexp(t, `(?m)^\d+\.\d\d TestGood example.com/m/bad$`, times.String())
	require.Regexp(t, `(?m)^\d+\.\d\d TestBad example.com/m/bad$`, times.String())
	require.Regexp(t, `(?m)^\d+\.\d\d TestFine example.com/m/good$`, times.String())
	require.NotContains(t, times.String(), "/sub")
}

func TestWhatIsNoEventIsPrinted(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, testlog.Print(strings.NewReader("go: no such module\n{}\n12\nlast"), &out, io.Discard))
	require.Equal(t, "go: no such module\n{}\n12\nlast", out.String())
}

func TestATestThatDidNotEndIsPrinted(t *testing.T) {
	var out bytes.Buffer
	events := `{"Action":"output","Package":"p","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"output","Package":"p","Test":"TestX","Output":"seen\n"}
`
	require.NoError(t, testlog.Print(strings.NewReader(events), &out, io.Discard))
	require.Equal(t, "seen\n", out.String())
}

func TestTheSlowestTestsAreListed(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, testlog.Slowest(strings.NewReader("1.50 TestA p\n60.25 TestB q\n0.10 TestC p\n"), &out, 2))
	require.Equal(t, "   60.2 s  TestB  q\n    1.5 s  TestA  p\n", out.String())
	require.Error(t, testlog.Slowest(strings.NewReader("x\n"), &out, 2))
}
