package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pagesOf are the pages for readers, by their paths from the root.
func pagesOf(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "images/README.md"}
	docs, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, docs)
	for _, path := range docs {
		all = append(all, "docs/"+filepath.Base(path))
	}
	return all
}

func pageText(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	return string(text)
}

// rowOfIndex is a row of the index: what a reader wants, the page, and its question.
var rowOfIndex = regexp.MustCompile(`(?m)^\| [^|]+ \| \[[^]]+\]\(([^)]+)\) \| ([^|]+) \|$`)

func TestTheIndexNamesEveryPageOnceWithItsQuestion(t *testing.T) {
	index := map[string]string{}
	for _, row := range rowOfIndex.FindAllStringSubmatch(pageText(t, "docs/README.md"), -1) {
		page := filepath.Join("docs", row[1])
		require.Empty(t, index[page], "docs/README.md names %s twice", page)
		index[page] = row[2]
	}
	for _, page := range pagesOf(t) {
		if page != "README.md" && page != "docs/README.md" {
			require.Regexp(t, `\?$`, index[page], "docs/README.md has the question that %s answers", page)
		}
	}
}

// pathIn is a path of the repository in a page.
var pathIn = regexp.MustCompile("`((?:vmi|scheduler|handler|launcher|network|storage|internal|manifests|cmd|docs|examples|images|hack)/[a-zA-Z0-9_./-]+)`")

func TestPagesThatShowTheCodeNameFilesThatExist(t *testing.T) {
	for _, page := range []string{"CONTRIBUTING.md", "docs/README.md", "docs/architecture.md", "docs/releases.md", "docs/stability.md", "docs/testing.md"} {
		paths := pathIn.FindAllStringSubmatch(pageText(t, page), -1)
		require.NotEmpty(t, paths, page)
		for _, p := range paths {
			_, err := os.Stat(filepath.Join(root, p[1]))
			require.NoError(t, err, "%s names %s", page, p[1])
		}
	}
}

func TestTheREADMEIsShort(t *testing.T) {
	require.LessOrEqual(t, strings.Count(pageText(t, "README.md"), "\n"), 140)
}
