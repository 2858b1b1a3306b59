package pod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestASocketToTheNodeNeedsThePermissionOfTheCluster(t *testing.T) {
	t.Parallel()
	v := vmitest.New(with(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachVSOCK = new(true) }))
	_, err := pod.Render(v, config)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "spec.domain.devices.autoattachVSOCK: Invalid value: true: sockets between guests and their nodes are switched off in this cluster's configuration: leave it out")

	allowed := config
	allowed.Cluster.Limits.Features.VSOCK = true
	for _, emulation := range []bool{false, true} {
		allowed.AllowEmulation = emulation
		p, err := pod.Render(v, allowed)
		require.NoError(t, err)
		require.Contains(t, p.Spec.Containers[0].Resources.Limits, corev1.ResourceName(vmi.VhostVSOCKResource))
	}
	v.Spec.Domain.Devices.AutoattachVSOCK = new(false)
	p, err := pod.Render(v, config)
	require.NoError(t, err)
	require.NotContains(t, p.Spec.Containers[0].Resources.Limits, corev1.ResourceName(vmi.VhostVSOCKResource))
}
