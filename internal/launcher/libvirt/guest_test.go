package libvirt

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestAttackAnAgentsAnswerIsReadWithinLimits(t *testing.T) {
	t.Parallel()
	users, err := returned[[]struct{ User string }](agentAnswer{`{"return":[{"user":"root"}]}`})
	require.NoError(t, err)
	require.Equal(t, "root", users[0].User)
	for _, answer := range []string{"", "{}", `{"return":null}`, `{"return":5}`, `{"return":"` + strings.Repeat("x", maxAnswer) + `"}`} {
		_, err := returned[[]struct{ User string }](agentAnswer{answer})
		require.Error(t, err, answer[:min(len(answer), 20)])
	}
	require.Equal(t, "a [2Jb", plain("a\x1b[2Jb"))
	require.Len(t, plain(strings.Repeat("x", 5000)), mostText)
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1bb\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range plain(s) {
			require.True(t, unicode.IsGraphic(r))
		}
	})
}
