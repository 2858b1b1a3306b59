package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATimeIsReplacedAndNothingElse(t *testing.T) {
	xml := "<a><qemuctime>12</qemuctime><selfctime>3</selfctime></a>"
	require.Equal(t, "<a><qemuctime>99</qemuctime><selfctime>3</selfctime></a>", string(setTime([]byte(xml), "qemuctime", 99)))
	require.Equal(t, xml, string(setTime([]byte(xml), "qemumoddirmtime", 99)), "what is not there is not added")
}

func TestTheLatestChangeCounts(t *testing.T) {
	p := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(p, nil, 0o600))
	require.NoError(t, os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0)))
	got, err := changed(p, p+"missing")
	require.NoError(t, err)
	require.InDelta(t, time.Now().Unix(), got, 60, "the change of the file, not that of its content")
}

func TestLibvirtAsksAnEmulatingQEMUInFewQuestions(t *testing.T) {
	const record = "<qemuCaps>\n  <flag name='a'/>\n  <flag name='cpu-unavailable-features'/>\n  <flag name='b'/>\n</qemuCaps>\n"
	require.Equal(t, "<qemuCaps>\n  <flag name='a'/>\n  <flag name='b'/>\n</qemuCaps>\n", string(forEmulation([]byte(record))))
	require.Equal(t, "<qemuCaps/>", string(forEmulation([]byte("<qemuCaps/>"))))
}
