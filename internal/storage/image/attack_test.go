package image

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// packed is a container disk that holds the file at path.
func packed(t *testing.T, path string) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, diskDir), 0o755))
	require.NoError(t, os.Rename(path, filepath.Join(root, diskDir, "disk.img")))
	return root
}

func TestAttackAnImageThatNamesAnotherFileIsRefused(t *testing.T) {
	qemuImg := testenv.Program(t, "qemu-img")
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, make([]byte, 1<<20), 0o600))
	over := func(name string, more ...string) []string {
		return append([]string{"-f", "qcow2", "-u", "-F", "raw", "-b", name}, more...)
	}
	for name, tt := range map[string]struct {
		create []string
		says   string
	}{
		"an absolute backing file":       {over(secret), "has a backing file"},
		"a relative one":                 {over("../../../../etc/shadow"), "has a backing file"},
		"one by json":                    {over(`json:{"driver":"raw","file":{"driver":"file","filename":"` + secret + `"}}`), "has a backing file"},
		"one by nbd":                     {over("nbd://169.254.169.254:80/x"), "has a backing file"},
		"one by ssh":                     {over("ssh://root@node/etc/shadow"), "has a backing file"},
		"one by https":                   {over("https://kubernetes.default.svc/api"), "has a backing file"},
		"a device":                       {over("/dev/vda"), "has a backing file"},
		"the root of a process":          {over("/proc/self/root/etc/shadow"), "has a backing file"},
		"a descriptor":                   {over("/proc/self/fd/0"), "has a backing file"},
		"a backing file in version 2":    {over(secret, "-o", "compat=0.10"), "has a backing file"},
		"an external data file":          {[]string{"-f", "qcow2", "-o", "data_file=" + filepath.Join(dir, "data")}, "keeps its data in another file"},
		"a raw external data file":       {[]string{"-f", "qcow2", "-o", "data_file=" + filepath.Join(dir, "raw") + ",data_file_raw=on"}, "keeps its data in another file"},
		"LUKS within qcow2":              {[]string{"--object", "secret,id=s,data=x", "-f", "qcow2", "-o", "encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=1"}, "is encrypted"},
		"AES within qcow2":               {[]string{"--object", "secret,id=s,data=x", "-f", "qcow2", "-o", "encrypt.format=aes,encrypt.key-secret=s"}, "is encrypted"},
		"LUKS":                           {[]string{"--object", "secret,id=s,data=x", "-f", "luks", "-o", "key-secret=s,iter-time=1"}, "in format LUKS"},
		"qcow of version 1":              {[]string{"-f", "qcow"}, "is of version 1"},
		"QED":                            {[]string{"-f", "qed"}, "in format QED"},
		"QED with a backing file":        {[]string{"-f", "qed", "-u", "-F", "raw", "-b", secret}, "in format QED"},
		"VMDK":                           {[]string{"-f", "vmdk"}, "in format VMDK"},
		"VMDK with an extent of its own": {[]string{"-f", "vmdk", "-o", "subformat=monolithicFlat"}, "in format VMDK"},
		"VMDK with extents of 2 GiB":     {[]string{"-f", "vmdk", "-o", "subformat=twoGbMaxExtentSparse"}, "in format VMDK"},
		"VHDX":                           {[]string{"-f", "vhdx"}, "in format VHDX"},
		"VHD":                            {[]string{"-f", "vpc"}, "in format VHD"},
		"VDI":                            {[]string{"-f", "vdi"}, "in format VDI"},
		"Parallels":                      {[]string{"-f", "parallels"}, "in format Parallels"},
	} {
		if strings.HasPrefix(name, "LUKS") && !testenv.Long() {
			continue // qemu-img takes seconds for the key; the tests of package storage have such headers
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := filepath.Join(t.TempDir(), "disk.img")
			out, err := exec.Command(qemuImg, append(append([]string{"create", "-q"}, tt.create...), p, "16M")...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			root := packed(t, p)
			_, err = inChild.ContainerDisk(t.Context(), root, "")
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, tt.says)
			require.NotContains(t, err.Error(), secret, "the name is the image's")

			to := t.TempDir()
			require.NoError(t, Copy(root, "", to))
			_, err = inChild.ContainerDisk(t.Context(), to, "")
			require.ErrorContains(t, err, tt.says, "a copy is inspected as well")
		})
	}
}

func TestAttackAnImageThatIsNoFileOrIsNotToBeBelievedIsRefused(t *testing.T) {
	qemuImg := testenv.Program(t, "qemu-img")
	testenv.Root(t)
	sparse := func(size int64) func(t *testing.T, p string) {
		return func(t *testing.T, p string) {
			require.NoError(t, os.WriteFile(p, nil, 0o644))
			require.NoError(t, os.Truncate(p, size))
		}
	}
	for name, tt := range map[string]struct {
		file func(t *testing.T, p string)
		says string
	}{
		"a link to a secret":  {func(t *testing.T, p string) { require.NoError(t, os.Symlink("/etc/shadow", p)) }, "symbolic link"},
		"a link to a process": {func(t *testing.T, p string) { require.NoError(t, os.Symlink("/proc/self/root/etc/shadow", p)) }, "symbolic link"},
		"a pipe":              {func(t *testing.T, p string) { require.NoError(t, unix.Mkfifo(p, 0o644)) }, "not a regular file"},
		"a character device": {func(t *testing.T, p string) {
			require.NoError(t, unix.Mknod(p, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5))))
		}, "not a regular file"},
		"a folder":           {func(t *testing.T, p string) { require.NoError(t, os.Mkdir(p, 0o755)) }, "not a regular file"},
		"a socket":           {func(t *testing.T, p string) { require.NoError(t, unix.Mknod(p, unix.S_IFSOCK|0o644, 0)) }, "not a regular file"},
		"a sparse file":      {sparse(1<<50 + 512), "has 1125899906843136 bytes"},
		"a cut image":        {cut(qemuImg, 65536), "is not complete"},
		"a cut header":       {cut(qemuImg, 60), "ends within its header"},
		"a disk of 8 EiB":    {patched(qemuImg, 24, "\x7f\xff\xff\xff\xff\xff\xfe\x00"), "has a disk of 9223372036854775296 bytes"},
		"a huge L1 table":    {patched(qemuImg, 36, "\x7f\xff\xff\xff"), "has an L1 table of 17179869176 bytes"},
		"a huge refcount":    {patched(qemuImg, 56, "\x7f\xff\xff\xff"), "has a table of reference counts"},
		"2^31 snapshots":     {patched(qemuImg, 60, "\x7f\xff\xff\xff"), "has 2147483647 snapshots"},
		"a huge extension":   {patched(qemuImg, 116, "\xff\xff\xff\xff"), "has an extension of its header"},
		"an unknown feature": {patched(qemuImg, 72, "\x00\x00\x00\x00\x00\x00\x01\x00"), "needs features that are not known (0x100)"},
		"a data file's name": {patched(qemuImg, 112, "DATA"), "names another file for its data"},
		"clusters of 2^32":   {patched(qemuImg, 20, "\x00\x00\x00\x20"), "has clusters of 2^32 bytes"},
		"a header of 4 GiB":  {patched(qemuImg, 100, "\xff\xff\xff\xf8"), "has a header of"},
		"a version to come":  {patched(qemuImg, 4, "\x00\x00\x00\x04"), "is of version 4"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, unix.Mount("none", root, "tmpfs", 0, "size=4M")) // it holds sparse files of any size
			t.Cleanup(func() { require.NoError(t, unix.Unmount(root, 0)) })
			require.NoError(t, os.Mkdir(filepath.Join(root, diskDir), 0o755))
			tt.file(t, filepath.Join(root, diskDir, "disk.img"))
			_, err := inChild.ContainerDisk(t.Context(), root, "")
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// cut makes a qcow2 image and keeps its first size bytes.
func cut(qemuImg string, size int64) func(t *testing.T, p string) {
	return func(t *testing.T, p string) {
		require.NoError(t, exec.Command(qemuImg, "create", "-q", "-f", "qcow2", p, "16M").Run())
		require.NoError(t, os.Truncate(p, size))
	}
}

// patched makes a qcow2 image and writes bytes to its header.
func patched(qemuImg string, at int64, bytes string) func(t *testing.T, p string) {
	return func(t *testing.T, p string) {
		require.NoError(t, exec.Command(qemuImg, "create", "-q", "-f", "qcow2", p, "16M").Run())
		f, err := os.OpenFile(p, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte(bytes), at)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}

// TestAttackQEMUFindsNoOtherFileInAnAcceptedImage changes bytes of real headers at
// random and asks QEMU about each image that is accepted.
func TestAttackQEMUFindsNoOtherFileInAnAcceptedImage(t *testing.T) {
	qemuImg := testenv.Program(t, "qemu-img")
	tries, accepted := 300, 0
	if testenv.Long() {
		tries = 30000
	}
	dir := t.TempDir()
	var seeds [][]byte
	for i, args := range [][]string{
		nil, {"-o", "compat=0.10"}, {"-u", "-F", "raw", "-b", "/etc/shadow"}, {"-o", "data_file=" + filepath.Join(dir, "data")}, {"-o", "extended_l2=on,cluster_size=16k"},
	} {
		p := filepath.Join(dir, "seed")
		require.NoError(t, exec.Command(qemuImg, append(append([]string{"create", "-q", "-f", "qcow2"}, args...), p, "16M")...).Run(), i)
		b, err := os.ReadFile(p)
		require.NoError(t, err)
		require.NoError(t, os.Remove(p))
		seeds = append(seeds, b)
	}
	random := rand.New(rand.NewPCG(9, uint64(tries)))
	p := filepath.Join(dir, "image")
	for n := range tries {
		b := append([]byte(nil), seeds[n%len(seeds)]...)
		mutate(b, random)
		i, err := storage.Inspect(strings.NewReader(string(b)), int64(len(b)))
		if err != nil {
			require.ErrorIs(t, err, vmi.ErrInvalid)
			continue
		}
		require.NoError(t, os.WriteFile(p, b, 0o600))
		out, err := exec.Command(qemuImg, "info", "-f", string(i.Format), "--output=json", p).Output()
		if err != nil {
			continue // QEMU refuses it
		}
		accepted++
		var info struct {
			Size     int64  `json:"virtual-size"`
			Backing  string `json:"backing-filename"`
			Crypt    bool   `json:"encrypted"`
			Specific struct {
				Data struct {
					DataFile string `json:"data-file"`
				} `json:"data"`
			} `json:"format-specific"`
		}
		require.NoError(t, json.Unmarshal(out, &info), "%s", out)
		require.Empty(t, info.Backing)
		require.Empty(t, info.Specific.Data.DataFile)
		require.False(t, info.Crypt)
		require.Less(t, max(i.SizeBytes-info.Size, info.Size-i.SizeBytes), int64(512), "QEMU reads the size as it was read here, in sectors")
	}
	require.Positive(t, accepted, "no image was accepted: the test shows nothing")
	t.Logf("%d images, of which QEMU opened %d that were accepted", tries, accepted)
}

// mutate changes up to 3 places of the header of an image.
func mutate(b []byte, random *rand.Rand) {
	for range 1 + random.IntN(3) {
		at := random.IntN(160)
		switch random.IntN(3) {
		case 0:
			b[at] ^= 1 << random.IntN(8)
		case 1:
			b[at] = byte(random.IntN(256))
		case 2:
			for i := at &^ 3; i < at&^3+4; i++ {
				b[i] = 0
			}
		}
	}
}

func TestAttackAFileIsOpenedByItsNameWhateverTheNameSays(t *testing.T) {
	qemuImg := testenv.Program(t, "qemu-img")
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("SECRET"), 0o644))
	for _, name := range []string{
		`json:{"driver":"raw","file.filename":"` + strings.ReplaceAll(secret, "/", "%2f") + `"}`,
		"nbd:unix:sock", "fat:rw:dir", "file:x", "blkdebug::x", "a.img,driver=raw", "-o", "--help", "data=on,file.filename=x", "$(id)", "ü漢.img", "a\\b'c\"d",
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(root, diskDir), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, diskDir, name), append([]byte("IMAGE"), make([]byte, 1<<16)...), 0o644))
			for _, file := range []string{"", "/disk/" + name} {
				i, err := inChild.ContainerDisk(t.Context(), root, file)
				require.NoError(t, err)
				require.Equal(t, filepath.Join(root, diskDir, name), i.Path)
				over := filepath.Join(t.TempDir(), "over.qcow2")
				require.NoError(t, Make(t.Context(), storage.Attachment{Name: "root", Path: over, Format: storage.QCOW2, SizeBytes: 1 << 16, Source: storage.Overlay{Base: i}}))
				out, err := exec.Command(qemuImg, "convert", "-f", "qcow2", "-O", "raw", over, over+".raw").CombinedOutput()
				require.NoError(t, err, "%s", out)
				got, err := os.ReadFile(over + ".raw")
				require.NoError(t, err)
				require.Equal(t, "IMAGE", string(got[:5]))
			}
		})
	}
	_, err := inChild.ContainerDisk(t.Context(), tree(t, map[string]string{"disk/a": "x"}), `json:{"driver":"file","filename":"`+secret+`"}`)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "does not exist")
}
