package archtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryRowOfThePageOnLifecycleNamesATestThatExists(t *testing.T) {
	const page = "docs/lifecycle.md"
	text := pageText(t, page)
	tests := testsOf(t)
	for _, m := range testNamed.FindAllStringSubmatch(text, -1) {
		require.True(t, named(tests, m[1], m[2] != ""), "%s names the test %s, which does not exist", page, m[1])
	}
	rows := 0
	for _, claim := range claimsOf(text) {
		if claim[0] == '|' {
			rows++
			require.Regexp(t, testNamed, claim, page)
		}
	}
	require.Greater(t, rows, 20)
}
