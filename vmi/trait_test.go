package vmi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTraitsOfAKindAreInItsField(t *testing.T) {
	require.Equal(t, []string{"persistentVolumeClaim", "dataVolume", "configMap", "secret", "downwardAPI", "serviceAccount"}, FilesystemKinds())
	s := VolumeSource{Secret: &SecretVolume{}, HostDisk: &HostDisk{}}
	require.Equal(t, []string{"hostDisk", "secret"}, s.Kinds(), "in the order of the fields")
	require.Empty(t, (&VolumeSource{}).Kinds())

	require.Equal(t, []string{"bridge"}, RemovableBindings())
	for _, tt := range []struct {
		of                InterfaceBinding
		device, removable bool
	}{
		{InterfaceBinding{}, false, false}, {InterfaceBinding{Bridge: &InterfaceBridge{}}, false, true},
		{InterfaceBinding{Masquerade: &InterfaceMasquerade{}}, false, false}, {InterfaceBinding{SRIOV: &InterfaceSRIOV{}}, true, false},
	} {
		require.Equal(t, tt.device, tt.of.IsDevice(), "%v", tt.of.Bindings())
		require.Equal(t, tt.removable, tt.of.IsRemovable(), "%v", tt.of.Bindings())
	}
}
