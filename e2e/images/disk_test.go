package images

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsCompressedIsWhole(t *testing.T) {
	text := strings.Repeat("all of it ", 1000)
	b, err := compressed(func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	got, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	why := errors.New("no more")
	_, err = compressed(func(io.Writer) error { return why })
	require.ErrorIs(t, err, why)
}
