package image

import (
	"bytes"
	"context"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheChecksumOfAFileIsItsCRC32(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"empty": nil, "text": []byte("123456789"), "larger than a block": bytes.Repeat([]byte("abc"), 300<<10)} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		sum, err := Checksum(t.Context(), path)
		require.NoError(t, err)
		require.Equal(t, crc32.ChecksumIEEE(content), sum)
	}
	sum, err := Checksum(t.Context(), filepath.Join(dir, "text"))
	require.NoError(t, err)
	require.EqualValues(t, 0xcbf43926, sum, "the check value of CRC-32")
	_, err = Checksum(t.Context(), filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAttackAFileOfAnImageIsNotReadLongerThanTheStartLasts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sparse")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<40))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Checksum(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
}
