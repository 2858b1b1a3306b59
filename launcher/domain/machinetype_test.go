package domain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestTheMachineTypesOfARMAreNamedWithTheNewestFirst(t *testing.T) {
	t.Parallel()
	err := MachineTypeFault("virt-99.0", []string{"virt-9.2", "raspi3b", "virt", "virt-10.0", "sbsa-ref"})
	require.EqualError(t, err, "QEMU has no machine type virt-99.0: set machine.type to one of virt, virt-10.0, virt-9.2: invalid")
}

func TestAMachineTypeThatQEMUDoesNotHaveIsInvalid(t *testing.T) {
	t.Parallel()
	have := []string{"pc-q35-2.9", "pc", "pc-q35-rhel9.2.0", "pc-i440fx-7.2", "pc-q35-7.2", "microvm", "q35", "pc-q35-4.0.1", "pc-q35-2.10", "pc-q35-4.0"}
	for _, known := range []string{"q35", "pc-q35-4.0.1", "pc-i440fx-7.2"} {
		require.NoError(t, MachineTypeFault(known, have))
	}
	err := MachineTypeFault("pc-q35-99.9", have)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.EqualError(t, err, "QEMU has no machine type pc-q35-99.9: set machine.type to one of "+
		"q35, pc-q35-rhel9.2.0, pc-q35-7.2, pc-q35-4.0.1, pc-q35-4.0, pc-q35-2.10, pc-q35-2.9: invalid")
}
