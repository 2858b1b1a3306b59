package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// undefended is the section of docs/security.md whose sentences no test can hold.
const undefended = "What is not defended"

// securitySections are the headings that docs/security.md has, beside those of the
// other packages.
var securitySections = []string{"Trust", "Disks", "Devices", "Tokens", "Admission", "Pods of virt-controller", "Node", "Network", undefended}

var (
	testDeclared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w+)\(`)
	// A name that ends in … stands for all tests that begin so.
	testNamed = regexp.MustCompile("`((?:Test|Fuzz|Example)\\w+)(…?)`")
)

// testsOf are the names of all tests, also those of nested modules.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && p != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata") {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(p, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(p)
		for _, m := range testDeclared.FindAllSubmatch(text, -1) {
			out[string(m[1])] = true
		}
		return err
	})
	require.NoError(t, err)
	require.True(t, out["TestFilesStaySmall"])
	return out
}

func TestThePagesNameTestsThatExist(t *testing.T) {
	tests := testsOf(t)
	for _, page := range pagesOf(t) {
		for _, m := range testNamed.FindAllStringSubmatch(pageText(t, page), -1) {
			require.True(t, named(tests, m[1], m[2] != ""), "%s names the test %s, which does not exist", page, m[1])
		}
	}
}

func TestEveryClaimOfThePageOnSecurityNamesATest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	require.NoError(t, err)
	require.NotRegexp(t, `(?m)^\|.{300}`, string(page), "a row of a table that is so long is to be sentences")
	sections := map[string]int{}
	for _, s := range strings.Split(string(page), "\n## ")[1:] {
		heading, text, _ := strings.Cut(s, "\n")
		sections[heading]++
		if heading == undefended {
			continue
		}
		claims := claimsOf(text)
		require.NotEmpty(t, claims, "docs/security.md, section %s", heading)
		for _, claim := range claims {
			require.Regexp(t, testNamed, claim, "docs/security.md, section %s", heading)
		}
	}
	for _, heading := range securitySections {
		require.Equal(t, 1, sections[heading], "docs/security.md has the section %s once", heading)
	}
}

// named says that there is a test of the name, or one that begins with it.
func named(tests map[string]bool, name string, begins bool) bool {
	for t := range tests {
		if t == name || begins && strings.HasPrefix(t, name) {
			return true
		}
	}
	return false
}

// claimsOf are the items of lists and the rows of tables in a section. The first row
// of a table is its head.
func claimsOf(text string) []string {
	var out []string
	item, row := false, 0
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "|"):
			if row++; row > 2 {
				out = append(out, line)
			}
			item = false
			continue
		case strings.HasPrefix(line, "- "):
			out, item = append(out, line), true
		case item && strings.HasPrefix(line, "  "):
			out[len(out)-1] += line
		default:
			item = false
		}
		row = 0
	}
	return out
}

func TestATestIsNamedInFullOrByItsBeginning(t *testing.T) {
	tests := map[string]bool{"TestAttackA": true}
	require.True(t, named(tests, "TestAttackA", false))
	require.True(t, named(tests, "TestAttack", true))
	require.False(t, named(tests, "TestAttack", false))
	require.False(t, named(tests, "TestOther", true))
}

func TestClaimsAreItemsAndRows(t *testing.T) {
	text := "Words.\n\n| a | b |\n|---|---|\n| 1 | `TestA` |\n| 2 | |\n\n- one,\n  still (`TestB`);\n- two.\n\nMore words.\n"
	require.Equal(t, []string{"| 1 | `TestA` |\n", "| 2 | |\n", "- one,\n  still (`TestB`);\n", "- two.\n"}, claimsOf(text))
}
