package domain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestTheDomainIsAsTheClusterIsConfigured(t *testing.T) {
	t.Parallel()
	v := instance()
	d, err := Build(v, host(v, func(h *Host) {
		h.Settings = config.Launcher{SMBIOS: vmi.SMBIOSConfiguration{Manufacturer: "Acme", Product: "Cloud", Version: "2", Sku: "7", Family: "F"}, StatsPeriod: 3}
	}))
	require.NoError(t, err)
	got := map[string]string{}
	for _, e := range d.SysInfo[0].SMBIOS.System.Entry {
		got[e.Name] = e.Value
	}
	require.Equal(t, map[string]string{"manufacturer": "Acme", "product": "Cloud", "version": "2", "sku": "7", "family": "F", "uuid": d.UUID}, got)
	require.Equal(t, uint(3), d.Devices.MemBalloon.Stats.Period)

	d, err = Build(v, host(v, func(h *Host) { h.Settings.StatsPeriod = -1 }))
	require.NoError(t, err)
	require.Nil(t, d.Devices.MemBalloon.Stats)
}
