package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
)

func xmls(in string, args ...string) (code int, out, faults string) {
	var o, f bytes.Buffer
	code = status(args, strings.NewReader(in), &o, &f)
	return code, o.String(), f.String()
}

func TestTheDomainsOfAllVMIsArePrinted(t *testing.T) {
	code, out, faults := xmls("", "../vmi-hello.yaml", "../service-hello.yaml", "../vm-hello.yaml")
	require.Empty(t, faults)
	require.Zero(t, code)
	golden.Equal(t, "testdata/hello.xml", []byte(out))
}

const claim = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: lasting, namespace: shop}
spec:
  domain:
    memory: {guest: 64Mi}
    devices:
      disks: [{name: data, disk: {bus: virtio}}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

func TestADomainWithoutKVMIsPrintedFromStandardInput(t *testing.T) {
	code, out, faults := xmls(claim, "-emulate", "-")
	require.Empty(t, faults)
	require.Zero(t, code)
	require.Contains(t, out, `<domain type="qemu">`)
	require.Contains(t, out, `<name>shop_lasting</name>`)
	require.Contains(t, out, `/vmi-disks/data/disk.img"`)
}

func TestAllFaultsAreInOneMessageAndNothingIsPrinted(t *testing.T) {
	code, out, faults := xmls(strings.ReplaceAll(claim, "64Mi", "0"), "-", "testdata/none.yaml", "../vmi-hello.yaml")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, faults, "vmi-to-xml: -: VirtualMachineInstance/lasting: spec.domain.memory.guest: FieldValueInvalid: ")
	require.Contains(t, faults, "testdata/none.yaml: ")
}

func TestAWrongCommandLineHasItsStatus(t *testing.T) {
	for _, args := range [][]string{{}, {"-nosuch"}} {
		code, out, faults := xmls("", args...)
		require.Equal(t, 2, code)
		require.Empty(t, out)
		require.Contains(t, faults, "see vmi-to-xml --help")
	}
	code, out, _ := xmls("", "-h")
	require.Zero(t, code)
	require.Contains(t, out, "usage: vmi-to-xml [FLAG...] FILE...")
}
