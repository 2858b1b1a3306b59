package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// reasonsIn are where reasons of VMIs are declared that users see, with how.
var reasonsIn = map[string]*regexp.Regexp{
	"vmi/condition.go":           regexp.MustCompile(`\tReasonPaused\w* += "(\w+)"`),
	"vmi/readiness.go":           regexp.MustCompile(`\tReason\w+ += "(\w+)"`),
	"handler/observed.go":        regexp.MustCompile(`\tReason\w+ += "(\w+)"`),
	"launcher/finding.go":        regexp.MustCompile(`\tReason\w+ += "(\w+)"`),
	"launcher/protocol/state.go": regexp.MustCompile(`EndReason = "(\w+)"`),
	"scheduler/instance/*.go":    regexp.MustCompile(`(?m)(?:^\t|^const )[A-Z]\w+ += "(\w+)"|^\t(?:"\w+": +|failed\w+ += )"(\w+)"`),
}

func TestEveryReasonOfAVMIIsInTheDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/conditions.md"))
	require.NoError(t, err)
	for pattern, declaration := range reasonsIn {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		found := 0
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
				found++
				reason := strings.Join(m[1:], "")
				require.True(t, bytes.Contains(page, []byte("`"+reason+"`")), "docs/conditions.md does not explain %s of %s", reason, f)
			}
		}
		require.NotZero(t, found, pattern)
	}
}

// reasonOfTable is a reason in the first column of a table of the page.
var reasonOfTable = regexp.MustCompile("(?m)^\\| `([A-Z][a-z]\\w+)`")

func TestTheDocsHaveNoReasonThatDoesNotExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/conditions.md"))
	require.NoError(t, err)
	kubernetes := []string{"Unschedulable", "Terminated"}
	files, err := Files(root)
	require.NoError(t, err)
	var code []byte
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(root, f.Path))
		require.NoError(t, err)
		code = append(code, text...)
	}
	rows := reasonOfTable.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, rows)
	for _, m := range rows {
		require.True(t, slices.Contains(kubernetes, m[1]) || bytes.Contains(code, []byte(`"`+m[1]+`"`)), "no code has the reason %s of docs/conditions.md", m[1])
	}
}

// rowOfReady is a row of the table of reasons for which a VMI is not ready.
var rowOfReady = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (virt-\\w+) \\| ([^|]+) \\|")

func TestTheDocsHaveTheOwnerAndTheMeaningOfEveryReasonOfReady(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/conditions.md"))
	require.NoError(t, err)
	var got []vmi.NotReadyReason
	for _, m := range rowOfReady.FindAllStringSubmatch(string(page), -1) {
		got = append(got, vmi.NotReadyReason{Reason: m[1], Owner: vmi.Owner(m[2]), Meaning: m[3]})
	}
	require.Equal(t, vmi.NotReadyReasons(), got)
	declared, err := os.ReadFile(filepath.Join(root, "vmi/readiness.go"))
	require.NoError(t, err)
	require.Len(t, reasonsIn["vmi/readiness.go"].FindAll(declared, -1), len(got), "every reason that is declared is in the list")
}
