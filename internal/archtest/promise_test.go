package archtest

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/vmi/verb"
)

// promised are the words of the API that a version has promised: see docs/stability.md.
const promised = "testdata/promised.txt"

var update = flag.Bool("update", false, "add to the words of the API that are promised those that are new")

// promisedIn are the words of a page or a file: the groups of the expression.
func promisedIn(t *testing.T, file, what, expression string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(pageText(t, file), -1) {
		out = append(out, what+" "+strings.Join(m[1:], " "))
	}
	require.NotEmpty(t, out, "%s has no %s", file, what)
	return out
}

// wordsOfTheAPI are the words that clients of the API write or read.
func wordsOfTheAPI(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, section := range strings.Split(pageText(t, "docs/fields.md"), "\n## ")[1:] {
		kind, text, _ := strings.Cut(section, "\n")
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|[^|]*\\| served \\|").FindAllStringSubmatch(text, -1) {
			out = append(out, "field "+kind+" "+m[1])
		}
	}
	require.Greater(t, len(out), 500)
	out = append(out, promisedIn(t, "docs/conditions.md", "reason", "(?m)^\\| `([A-Z][a-z]\\w+)`")...)
	out = append(out, promisedIn(t, "docs/metrics.md", "metric", "(?m)^\\| `(kubevirt_\\w+)`")...)
	out = append(out, promisedIn(t, "vmi/label.go", "label", `(?m)^\t\w+(?:Label|Annotation) += "([^"]+)"`)...)
	for _, v := range verb.All() {
		out = append(out, "verb "+v.Method+" "+v.Path())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestWhatTheAPIHasPromisedIsKept(t *testing.T) {
	now := wordsOfTheAPI(t)
	b, err := os.ReadFile(promised)
	require.NoError(t, err)
	if *update {
		all := append(strings.Split(strings.TrimSpace(string(b)), "\n"), now...)
		slices.Sort(all)
		require.NoError(t, os.WriteFile(promised, []byte(strings.Join(slices.Compact(all), "\n")+"\n"), 0o644))
		return
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	require.Greater(t, len(lines), 500)
	for _, line := range lines {
		_, found := slices.BinarySearch(now, line)
		require.True(t, found, "a version has promised it, and it is not there: %s", line)
	}
}
