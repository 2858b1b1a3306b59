package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
)

func pods(in string, args ...string) (code int, out, faults string) {
	var o, f bytes.Buffer
	code = status(args, strings.NewReader(in), &o, &f)
	return code, o.String(), f.String()
}

func TestThePodsOfAllVMIsArePrinted(t *testing.T) {
	code, out, faults := pods("", "-image", "example/virt-launcher:1", "../vmi-hello.yaml", "../service-hello.yaml", "../vm-hello.yaml")
	require.Empty(t, faults)
	require.Zero(t, code)
	golden.Equal(t, "testdata/hello.yaml", []byte(out))
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

func TestAPodForEmulationIsPrintedFromStandardInput(t *testing.T) {
	code, out, faults := pods(claim, "-emulate", "-")
	require.Empty(t, faults)
	require.Zero(t, code)
	require.Contains(t, out, "claimName: data")
	require.NotContains(t, out, "devices.kubevirt.io/kvm")
}

func TestAllFaultsAreInOneMessageAndNothingIsPrinted(t *testing.T) {
	code, out, faults := pods(strings.ReplaceAll(claim, "64Mi", "0"), "-", "testdata/none.yaml", "../vmi-hello.yaml")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, faults, "vmi-to-pod: -: VirtualMachineInstance/lasting: spec.domain.memory.guest: FieldValueInvalid: ")
	require.Contains(t, faults, "testdata/none.yaml: ")
}

func TestAWrongCommandLineHasItsStatus(t *testing.T) {
	for _, args := range [][]string{{}, {"-nosuch"}} {
		code, out, faults := pods("", args...)
		require.Equal(t, 2, code)
		require.Empty(t, out)
		require.Contains(t, faults, "see vmi-to-pod --help")
	}
	code, out, _ := pods("", "-h")
	require.Zero(t, code)
	require.Contains(t, out, "usage: vmi-to-pod [FLAG...] FILE...")
}
