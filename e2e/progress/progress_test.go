package progress

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	p := New("x v1")
	write := func(s string) {
		n, err := p.Write([]byte(s))
		require.NoError(t, err)
		require.Equal(t, len(s), n)
	}
	write("go: downloading example.com/a v1.0.0\ngo: downloading example.com/b v1")
	require.Equal(t, "  x v1: modules downloaded: 1, 0s", p.String())
	write(".0.0\n")
	require.Equal(t, "  x v1: modules downloaded: 2, 0s", p.String())
	p.Begin(10)
	write("example.com/a\nexample.com/b\n# example.com/b\n./b.go:1:1: syntax error\n")
	require.Equal(t, "  x v1: packages compiled: 2 of at most 10, 0s", p.String())
	require.Equal(t, []string{"# example.com/b", "./b.go:1:1: syntax error"}, p.Said())
}
