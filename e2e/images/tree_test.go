package images

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func sample() tree {
	t := tree{}
	t.add("/usr/lib/liba.so.1.2", node{Mode: 0o644, Content: []byte("a")})
	t.add("/usr/lib/liba.so.1", node{Mode: 0o777, Link: "liba.so.1.2"})
	t.add("/lib", node{Mode: 0o777, Link: "/usr/lib"})
	t.add("/disk/guest.qcow2", node{Mode: 0o440, UID: 107, GID: 107, Content: []byte("guest")})
	return t
}

func TestATreeComesBackFromItsTarAndIsWrittenEquallyEachTime(t *testing.T) {
	t.Parallel()
	var one, two bytes.Buffer
	require.NoError(t, sample().writeTar(&one))
	require.NoError(t, sample().writeTar(&two))
	require.Equal(t, one.Bytes(), two.Bytes())
	back := tree{}
	require.NoError(t, back.readTar(&one))
	want := sample()
	require.ElementsMatch(t, want.sorted(), back.sorted())
	require.Equal(t, want["/disk/guest.qcow2"], back["/disk/guest.qcow2"])
}

func TestNamesAreResolvedThroughLinksOfFilesAndFolders(t *testing.T) {
	t.Parallel()
	real, ok := sample().resolve("/lib/liba.so.1")
	require.True(t, ok)
	require.Equal(t, "/usr/lib/liba.so.1.2", real)
	_, ok = sample().resolve("/lib/libb.so.1")
	require.False(t, ok)
	endless := tree{"/a": {Link: "b"}, "/b": {Link: "a"}}
	_, ok = endless.resolve("/a")
	require.False(t, ok)
	require.Equal(t, []string{"/usr/lib/liba.so.1", "/usr/lib/liba.so.1.2"}, sample().match("/usr/lib/liba*"))
}

func TestACPIOArchiveIsAlignedAndEndsWithItsTrailer(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, sample().writeCPIO(&b))
	require.Zero(t, b.Len()%4)
	require.Equal(t, 1+len(sample()), bytes.Count(b.Bytes(), []byte("070701")))
	require.Contains(t, b.String(), "TRAILER!!!")
}

func TestPackagesAreReadFromAptsSimulation(t *testing.T) {
	t.Parallel()
	const said = "NOTE: This is only a simulation!\nInst gcc-12-base (12.2.0-14 Debian:12.15/oldstable [amd64]) []\n" +
		"Inst busybox-static (1:1.35.0-4+b1 Debian:12.15/oldstable [amd64])\nConf busybox-static (1:1.35.0-4+b1 Debian [amd64])\n"
	require.Equal(t, []string{"busybox-static=1:1.35.0-4+b1", "gcc-12-base=12.2.0-14"}, parseSimulation(said, nil))
	require.Equal(t, []string{"busybox-static=1:1.35.0-4+b1"}, parseSimulation(said, []string{"busy*"}))
}

func TestWhatIsOfTheBuildHostIsTakenOutOfTheCapabilities(t *testing.T) {
	t.Parallel()
	require.Equal(t, "<qemuCaps>\n  <qemuctime>0</qemuctime>\n  <selfctime>0</selfctime>\n</qemuCaps>\n", string(timeless([]byte(
		"<qemuCaps>\n  <qemuctime>17</qemuctime>\n  <qemumoddirmtime>18</qemumoddirmtime>\n  <selfctime>19</selfctime>\n</qemuCaps>\n"))))
}

func TestTheSignatureOfAModuleIsCutOff(t *testing.T) {
	t.Parallel()
	body := []byte("a module")
	signed := append(bytes.Clone(body), "signature"...)
	signed = append(signed, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(len("signature")))
	signed = append(signed, "~Module signature appended~\n"...)
	require.Equal(t, body, unsigned(signed))
	require.Equal(t, body, unsigned(body))
}
