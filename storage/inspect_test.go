package storage

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// header is the head of a qcow2 image of 1 MiB, with changes.
func header(change ...func([]byte)) []byte {
	h := make([]byte, headerBytes)
	copy(h, "QFI\xfb")
	binary.BigEndian.PutUint32(h[4:], 3)
	binary.BigEndian.PutUint64(h[24:], 1<<20)
	for _, c := range change {
		c(h)
	}
	return h
}

func set32(at int, v uint32) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint32(b[at:], v) }
}
func set64(at int, v uint64) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint64(b[at:], v) }
}

func TestTheFirstBytesDecideTheFormat(t *testing.T) {
	for name, tt := range map[string]struct {
		head []byte
		want Image
	}{
		"qcow2":             {header(), Image{Format: QCOW2, SizeBytes: 1 << 20}},
		"qcow2, version 2":  {header(set32(4, 2))[:72], Image{Format: QCOW2, SizeBytes: 1 << 20}},
		"anything else":     {[]byte("\xeb\x3c\x90 boot sector"), Image{Format: Raw, SizeBytes: 15}},
		"a short raw image": {[]byte("Q"), Image{Format: Raw, SizeBytes: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Inspect(bytes.NewReader(tt.head), int64(len(tt.head)))
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAnImageThatIsNotSelfContainedOrNotSupportedIsInvalid(t *testing.T) {
	for name, tt := range map[string]struct {
		head []byte
		want string
	}{
		"a backing file":            {header(set64(8, 112), set32(16, 11)), "has a backing file"},
		"a backing file, version 2": {header(set32(4, 2), set64(8, 112)), "has a backing file"},
		"an external data file":     {header(set64(72, 4)), "keeps its data in another file"},
		"encryption":                {header(set32(32, 2)), "is encrypted"},
		"another version":           {header(set32(4, 1)), "version 1"},
		"a disk that is too large":  {header(set64(24, 1<<63)), "at most"},
		"a disk without size":       {header(set64(24, 0)), "has 0 bytes"},
		"a short header":            {header()[:90], "ends within its header"},
		"an empty file":             {nil, "has 0 bytes"},
		"a VMDK":                    {[]byte("KDMV....................."), "VMDK"},
		"a compressed image":        {[]byte("\x1f\x8b\x08......"), "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Inspect(bytes.NewReader(tt.head), int64(len(tt.head)))
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(header())
	f.Add(header(set64(8, 1)))
	f.Add([]byte("KDMV"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := Inspect(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			require.ErrorIs(t, err, vmi.ErrInvalid)
			return
		}
		require.Positive(t, i.SizeBytes)
		if i.Format == QCOW2 {
			require.Zero(t, binary.BigEndian.Uint64(b[8:]), "no backing file")
		}
	})
}
