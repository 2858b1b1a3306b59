package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// linkIn is a link of a page. The second group is where it leads, without its heading.
var linkIn = regexp.MustCompile(`\]\(([^()#\s]*)(#[^()\s]*)?\)`)

func TestLinksOfPagesLeadToPagesAndHeadings(t *testing.T) {
	found := 0
	for _, page := range pagesOf(t) {
		for _, m := range linkIn.FindAllStringSubmatch(pageText(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			_, err := os.Stat(filepath.Join(root, to))
			require.NoError(t, err, "%s links to %s", page, m[1])
			if m[2] != "" {
				require.Contains(t, headings(pageText(t, to)), m[2][1:], "%s links to a heading of %s", page, to)
			}
		}
	}
	require.NotZero(t, found)
}

// headings are the names by which links lead to the headings of a page.
func headings(page string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

func TestAHeadingHasTheNameThatLinksUse(t *testing.T) {
	require.Equal(t, []string{"1-install-it", "the-vmi-ends"}, headings("# 1. Install `it`\nwords\n### The VMI: ends\n"))
}
