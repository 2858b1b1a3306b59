package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

// content is size bytes with these at their places.
func content(size int, at map[int]string) []byte {
	b := make([]byte, size)
	for i, s := range at {
		copy(b[i:], s)
	}
	return b
}

// qcow2 is a real image of a disk of 1 MiB, with changes.
func qcow2(t *testing.T, change ...func([]byte) []byte) []byte {
	t.Helper()
	b, err := os.ReadFile(made(t, "a.qcow2", "-f", "qcow2"))
	require.NoError(t, err)
	for _, c := range change {
		b = c(b)
	}
	return b
}

func put(at int, s string) func([]byte) []byte {
	return func(b []byte) []byte { copy(b[at:], s); return b }
}

func TestWhatAGuestCanUseIsADisk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		content []byte
		anyRaw  bool
		want    disk
	}{
		"qcow2":                         {qcow2(t), false, disk{"qcow2", "disk.qcow2", 1 << 20}},
		"a raw disk with a boot sector": {content(1<<20, map[int]string{510: "\x55\xaa"}), false, disk{"raw", "disk.raw", 1 << 20}},
		"a raw disk with a GPT only":    {content(1<<20, map[int]string{512: "EFI PART"}), false, disk{"raw", "disk.raw", 1 << 20}},
		"a file system without a table": {content(1<<20, map[int]string{1080: "\x53\xef"}), false, disk{"raw", "disk.raw", 1 << 20}},
		"an ISO":                        {content(1<<20, map[int]string{32769: "CD001"}), false, disk{"ISO", "disk.iso", 1 << 20}},
		"an ISO that boots as a disk":   {content(1<<20, map[int]string{32769: "CD001", 510: "\x55\xaa"}), false, disk{"ISO", "disk.iso", 1 << 20}},
		"zeros, if that is meant":       {content(4096, nil), true, disk{"raw", "disk.raw", 4096}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := inspect(bytes.NewReader(tt.content), int64(len(tt.content)), tt.anyRaw)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestWhatNoGuestCanUseIsRefused(t *testing.T) {
	t.Parallel()
	boot := map[int]string{510: "\x55\xaa"}
	vhd := content(1<<20, boot)
	copy(vhd[1<<20-512:], "conectix")
	be := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
	for name, tt := range map[string]struct {
		content []byte
		says    string
	}{
		"an empty file":                {nil, "the file is empty"},
		"zeros":                        {content(4096, nil), "no partition table and no file system is found in it"},
		"a size that is no disk's":     {content(1000, boot), "1000 bytes, which is no multiple of 512"},
		"a page of the web":            {[]byte("<!DOCTYPE html>\n" + strings.Repeat("é not found\n", 100)), "no disk but text"},
		"an OVA":                       {content(4096, map[int]string{257: "ustar"}), "no disk but a tar archive, such as an OVA"},
		"a ZIP archive":                {content(4096, map[int]string{0: "PK\x03\x04"}), "ZIP"},
		"a compressed image":           {content(4096, map[int]string{0: "\xfd7zXZ\x00"}), "format xz"},
		"a VMDK":                       {content(4096, map[int]string{0: "KDMV"}), "qemu-img convert -O qcow2"},
		"a raw image that ends as VHD": {vhd, "begins as a raw image and ends as VHD"},
		"a backing file":               {qcow2(t, put(8, be(512))), "has a backing file"},
		"an external data file":        {qcow2(t, put(72, be(4))), "keeps its data in another file"},
		"encryption":                   {qcow2(t, put(32, "\x00\x00\x00\x02")), "is encrypted"},
		"a disk of nothing":            {qcow2(t, put(24, be(0))), "has 0 bytes"},
		"a corrupt image":              {qcow2(t, put(72, be(2))), "marked as corrupt"},
		"clusters of no size":          {qcow2(t, put(20, "\x00\x00\x00\xff")), "clusters of 2^255 bytes"},
		"half an image":                {qcow2(t, func(b []byte) []byte { return b[:len(b)/2] }), "not complete: its L1 table"},
		"a table at no place":          {qcow2(t, put(48, be(1<<63))), "not complete: its table of reference counts"},
		"qcow2 that is an ISO too":     {qcow2(t, put(32769, "CD001")), "both a qcow2 image and an ISO 9660 file system"},
		"qcow2 with a boot sector":     {qcow2(t, put(510, "\x55\xaa")), "both a qcow2 image and a boot sector"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := inspect(bytes.NewReader(tt.content), int64(len(tt.content)), false)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestRealImagesThatReferToOthersAreRefused(t *testing.T) {
	t.Parallel()
	base := made(t, "base.qcow2", "-f", "qcow2")
	for name, tt := range map[string]struct {
		path, says string
	}{
		"an overlay":            {made(t, "over.qcow2", "-f", "qcow2", "-F", "qcow2", "-b", base), "has a backing file"},
		"an external data file": {made(t, "outside.qcow2", "-f", "qcow2", "-o", "data_file="+base+".data"), "keeps its data in another file"},
		"a VMDK":                {made(t, "a.vmdk", "-f", "vmdk"), "format VMDK"},
		"a fixed VHD":           {made(t, "a.vhd", "-f", "vpc", "-o", "subformat=fixed,force_size=on"), "ends as VHD"},
	} {
		f, err := os.Open(tt.path)
		require.NoError(t, err)
		defer f.Close()
		info, err := f.Stat()
		require.NoError(t, err)
		_, err = inspect(f, info.Size(), true)
		require.ErrorContains(t, err, tt.says, name)
	}
}

func TestImagesOfEveryKindThatQEMUMakesAreComplete(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"compat=0.10", "cluster_size=512", "cluster_size=2M", "preallocation=metadata", "lazy_refcounts=on", "extended_l2=on", "compression_type=zstd"} {
		path := made(t, "a.qcow2", "-f", "qcow2", "-o", options)
		require.NoError(t, exec.Command(testenv.Program(t, "qemu-img"), "check", "-q", path).Run())
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = inspect(bytes.NewReader(b), int64(len(b)), false)
		require.NoError(t, err, options)
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(content(4096, map[int]string{510: "\x55\xaa"}), false)
	f.Add(content(70000, map[int]string{0: "QFI\xfb\x00\x00\x00\x03", 22: "\x00\x10", 30: "\x10"}), true)
	f.Fuzz(func(t *testing.T, b []byte, anyRaw bool) {
		d, err := inspect(bytes.NewReader(b), int64(len(b)), anyRaw)
		if err == nil {
			require.Positive(t, d.sizeBytes)
			require.NotEmpty(t, d.file)
		}
	})
}
