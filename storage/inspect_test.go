package storage

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// testBits is the size of the clusters of header.
const testBits = 12

// header is a qcow2 image of 16 MiB with clusters of 4 KiB as QEMU makes it, with
// changes.
func header(change ...func([]byte)) []byte {
	h := make([]byte, 4<<testBits)
	copy(h, "QFI\xfb")
	for _, set := range []func([]byte){
		set32(4, 3), set32(20, testBits), set64(24, 1<<24), set32(36, 8), set64(40, 3<<testBits),
		set64(48, 1<<testBits), set32(56, 1), set32(96, 4), set32(100, qcow2V3Bytes),
	} {
		set(h)
	}
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
		"qcow2":                       {header(), Image{Format: QCOW2, SizeBytes: 1 << 24}},
		"qcow2, version 2":            {header(set32(4, 2), set64(72, 1<<40)), Image{Format: QCOW2, SizeBytes: 1 << 24}},
		"qcow2, dirty, corrupt, zstd": {header(set64(72, 0b1011)), Image{Format: QCOW2, SizeBytes: 1 << 24}},
		"qcow2, extended L2":          {header(set64(72, 1<<4), set32(36, 16)), Image{Format: QCOW2, SizeBytes: 1 << 24}},
		"qcow2, with extensions":      {header(set32(104, 0x6803f857), set32(108, 7), set32(120, 0xe2792aca), set32(124, 3)), Image{Format: QCOW2, SizeBytes: 1 << 24}},
		"qcow2, 2 snapshots":          {header(set32(60, 2), set64(64, 2<<testBits)), Image{Format: QCOW2, SizeBytes: 1 << 24}},
		"anything else":               {[]byte("\xeb\x3c\x90 boot sector"), Image{Format: Raw, SizeBytes: 15}},
		"a short raw image":           {[]byte("Q"), Image{Format: Raw, SizeBytes: 1}},
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
		"a backing file":                      {header(set64(8, 112), set32(16, 11)), "has a backing file"},
		"a backing file, version 2":           {header(set32(4, 2), set64(8, 112)), "has a backing file"},
		"the length of a backing file's name": {header(set32(16, 11)), "has a backing file"},
		"an external data file":               {header(set64(72, 4)), "keeps its data in another file"},
		"the name of a data file":             {header(set32(104, 0x44415441), set32(108, 6)), "names another file for its data"},
		"the same, after another extension":   {header(set32(104, 1), set32(108, 1), set32(120, 0x44415441)), "names another file for its data"},
		"the same, version 2":                 {header(set32(4, 2), set32(72, 0x44415441)), "names another file for its data"},
		"encryption":                          {header(set32(32, 2)), "is encrypted"},
		"another version":                     {header(set32(4, 1)), "version 1"},
		"an unknown feature":                  {header(set64(72, 1<<5)), "needs features that are not known (0x20)"},
		"an unknown feature, the highest":     {header(set64(72, 1<<63)), "needs features that are not known"},
		"a disk that is too large":            {header(set64(24, 1<<63)), "at most"},
		"a disk without size":                 {header(set64(24, 0)), "has 0 bytes"},
		"clusters that are too small":         {header(set32(20, 8)), "has clusters of 2^8 bytes"},
		"clusters beyond all numbers":         {header(set32(20, 1<<31)), "has clusters of 2^2147483648 bytes"},
		"a header that is too short":          {header(set32(100, 72)), "has a header of 72 bytes"},
		"a header beyond its cluster":         {header(set32(100, 1<<31)), "has a header of 2147483648 bytes"},
		"a huge L1 table":                     {header(set32(36, 1<<30)), "has an L1 table of 8589934592 bytes"},
		"an L1 table that is too small":       {header(set32(36, 7)), "too small for a disk of 16777216 bytes"},
		"the same, extended L2":               {header(set64(72, 1<<4)), "too small for a disk of 16777216 bytes"},
		"an L1 table beyond the file":         {header(set64(40, 4<<testBits)), "is not complete: its L1 table"},
		"an L1 table beyond all numbers":      {header(set64(40, 1<<63|1<<62)), "is not complete: its L1 table"},
		"an L1 table between clusters":        {header(set64(40, 4096+512)), "is not complete: its L1 table"},
		"no refcount table":                   {header(set32(56, 0)), "has a table of reference counts of 0 bytes"},
		"a huge refcount table":               {header(set32(56, 1<<31)), "has a table of reference counts of"},
		"a refcount table beyond the file":    {header(set64(48, 1<<40)), "is not complete: its table of reference counts"},
		"many snapshots":                      {header(set32(60, 1<<31)), "has 2147483648 snapshots"},
		"snapshots beyond the file":           {header(set32(60, 400), set64(64, 1<<testBits)), "is not complete: its table of snapshots"},
		"snapshots beyond all numbers":        {header(set32(60, 1), set64(64, 1<<64-1)), "is not complete: its table of snapshots"},
		"an extension beyond the header":      {header(set32(104, 1), set32(108, 1<<32-1)), "has an extension of its header of 4294967295 bytes"},
		"an extension without an end":         {header(many), "has more than 64 extensions"},
		"a short header":                      {header()[:90], "ends within its header"},
		"a short header, version 2":           {header(set32(4, 2))[:71], "ends within its header"},
		"nothing but the name of the format":  {header()[:4], "ends within its header"},
		"an L1 table in the header":           {header(set64(40, 0)), "is not complete: its L1 table"},
		"a file that ends after its header":   {header()[:qcow2V3Bytes], "is not complete: its L1 table"},
		"an empty file":                       {nil, "has 0 bytes"},
		"a VMDK":                              {[]byte("KDMV....................."), "VMDK"},
		"a VMDK of version 3":                 {[]byte("COWD....................."), "VMDK"},
		"a Parallels image":                   {[]byte("WithoutFreeSpace"), "Parallels"},
		"a LUKS container":                    {[]byte("LUKS\xba\xbe\x00\x02"), "LUKS"},
		"a compressed image":                  {[]byte("\x1f\x8b\x08......"), "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Inspect(bytes.NewReader(tt.head), int64(len(tt.head)))
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// many fills the header with extensions of no length.
func many(b []byte) {
	for at := qcow2V3Bytes; at+8 <= 1<<testBits; at += 8 {
		binary.BigEndian.PutUint32(b[at:], 1)
	}
}

// counted counts the bytes that are read.
type counted struct {
	bytes.Reader
	read int
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(b, at)
	c.read += n
	return n, err
}

func FuzzInspect(f *testing.F) {
	f.Add(header())
	f.Add(header(set64(8, 1)))
	f.Add([]byte("KDMV"))
	f.Add(header(set32(104, 1), set32(108, 100)))
	f.Add(header(many))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &counted{Reader: *bytes.NewReader(b)}
		i, err := Inspect(r, int64(len(b)))
		require.LessOrEqual(t, r.read, 1000)
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
