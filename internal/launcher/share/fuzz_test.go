package share

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// FuzzRequest sends requests of any content to a folder with a file outside of it.
func FuzzRequest(f *testing.F) {
	top := f.TempDir()
	secret, shared := filepath.Join(top, "secret"), filepath.Join(top, "shared")
	require.NoError(f, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(f, os.Mkdir(shared, 0o700))
	root, err := unix.Open(shared, unix.O_PATH|unix.O_DIRECTORY, 0)
	require.NoError(f, err)
	for op := range uint32(55) {
		f.Add(op, uint64(1), []byte("\x02\x00\x00\x00\x00\x00\x00\x00../secret\x00../secret\x00"), uint16(4096))
		f.Add(op, uint64(1), []byte("name\x00"), uint16(16))
	}
	f.Fuzz(func(t *testing.T, op uint32, node uint64, body []byte, room uint16) {
		m := mounts{fresh: func() *session { return newSession(root, Config{MaxNodes: 100, MaxOpen: 100}) }}
		defer m.close()
		message := func(op uint32, node uint64, body []byte) []byte {
			b := binary.NativeEndian.AppendUint32(nil, uint32(inHeaderSize+len(body)))
			b = binary.NativeEndian.AppendUint32(b, op)
			b = binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(b, 1), node)
			return append(append(b, make([]byte, 16)...), body...)
		}
		m.handle(message(opInit, 0, append([]byte{7, 0, 0, 0, 38}, make([]byte, 59)...)), 4096)
		require.LessOrEqual(t, len(m.handle(message(op, node, body), int(room))), int(room))
		content, err := os.ReadFile(secret)
		require.NoError(t, err)
		require.Equal(t, "secret", string(content))
		there, err := os.ReadDir(top)
		require.NoError(t, err)
		require.Len(t, there, 2)
	})
}
