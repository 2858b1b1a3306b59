package libvirt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/libvirt"
)

func TestADiskIsMadeLarger(t *testing.T) {
	d := newDaemon(t)
	d.start("")
	require.NoError(t, d.BlockResize(t.Context(), name, "vda", 3<<20))
	info, err := d.BlockSize(t.Context(), name, "vda")
	require.NoError(t, err)
	require.EqualValues(t, 3<<20, info)
	require.ErrorContains(t, d.BlockResize(t.Context(), name, "vdx", 3<<20), "resize disk vdx of domain default_vm: ")
	require.ErrorIs(t, d.BlockResize(t.Context(), "default_other", "vda", 3<<20), libvirt.ErrNotFound)
}
