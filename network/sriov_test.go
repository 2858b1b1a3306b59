package network_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

func TestAnInterfaceOfTheNodeIsNotBoundInThePod(t *testing.T) {
	t.Parallel()
	v := instance(masquerade, vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}})
	v.Spec.Networks[1].NetworkSource = vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: "lan1"}}
	v.Spec.Domain.Devices.Interfaces[1].MacAddress = "02:00:00:00:00:07"
	// The pod need not have a link: its function may be of the driver vfio-pci already.
	cfg, err := network.Plan(network.Input{Instance: v, State: fresh()})
	require.NoError(t, err)
	alone, err := network.Plan(network.Input{Instance: instance(masquerade), State: fresh()})
	require.NoError(t, err)
	require.Equal(t, alone.Links, cfg.Links)
	require.Equal(t, alone.Filters, cfg.Filters)
	require.Equal(t, network.Attachment{Name: "lan1", MAC: "02:00:00:00:00:07"}, cfg.Attachments[1])
	require.Equal(t, vmi.InterfaceStatus{Name: "lan1", MAC: "02:00:00:00:00:07", InfoSource: "domain"}, cfg.Interfaces[1])
}

func TestThePodNetworkHasNoDeviceOfTheNode(t *testing.T) {
	t.Parallel()
	_, err := network.Plan(network.Input{Instance: instance(vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}), State: fresh()})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "spec.networks[0]: network default: interface default has the binding sriov, for which the pod network has no device: use a network of Multus")
}
