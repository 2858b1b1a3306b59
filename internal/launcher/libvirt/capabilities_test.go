package libvirt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMachineTypesAreThoseOfTheArchitecture(t *testing.T) {
	const xml = `<capabilities>
  <guest><os_type>hvm</os_type><arch name="i686"><machine maxCpus="1">isapc</machine></arch></guest>
  <guest><os_type>hvm</os_type><arch name="x86_64">
    <machine maxCpus="288">pc-q35-7.2</machine>
    <machine canonical="pc-q35-7.2" maxCpus="288">q35</machine>
  </arch></guest>
</capabilities>`
	got, err := machineTypes(xml, "x86_64")
	require.NoError(t, err)
	require.Equal(t, []string{"pc-q35-7.2", "q35"}, got)
	_, err = machineTypes(xml, "aarch64")
	require.ErrorContains(t, err, "no QEMU for the architecture aarch64")
	_, err = machineTypes("<", "x86_64")
	require.ErrorContains(t, err, "read the capabilities")
}
