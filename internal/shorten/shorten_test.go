package shorten

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATextHasAtMostSoManyBytes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text       string
		most       int
		head, tail string
	}{
		"an empty one":                        {"", 4, "", ""},
		"one that fits":                       {"abcdef", 6, "abcdef", "abcdef"},
		"one byte too many":                   {"abcdefg", 6, "abc…", "…efg"},
		"a character that is cut is left out": {"aäöüb", 7, "aä…", "…üb"},
		"bytes that are no text":              {"a\xffb", 9, "ab", "ab"},
		"nothing but the mark has room":       {"abcd", 3, "…", "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.head, Head(tt.text, tt.most))
			require.Equal(t, tt.tail, Tail(tt.text, tt.most))
		})
	}
}
