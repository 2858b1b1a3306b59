package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

func TestAnInvalidVMIIsRefusedAtOnceWithAllItsFaults(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	bad := guest("bad", cloudConfig("hostname: bad"))
	bad.Namespace = s.name
	bad.Spec.Domain.Memory = nil
	bad.Spec.Domain.Devices.Disks = append(bad.Spec.Domain.Devices.Disks, vmi.Disk{Name: "nowhere"})
	s.awaitAdmission()
	_, err := world.vmis.VirtualMachineInstances(s.name).Create(t.Context(), bad, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	var refusal apierrors.APIStatus
	require.True(t, errors.As(err, &refusal))
	var fields []string
	for _, c := range refusal.Status().Details.Causes {
		fields = append(fields, c.Field)
	}
	require.Equal(t, []string{"spec.domain.devices.disks[2].name", "spec.domain.memory.guest"}, fields)

	manifest, err := json.Marshal(bad)
	require.NoError(t, err)
	_, err = world.kubectl.RunInput(t.Context(), bytes.NewReader(manifest), "-n", s.name, "apply", "-f", "-")
	for _, want := range append(fields, `The VirtualMachineInstance "bad" is invalid`, "nowhere") {
		require.ErrorContains(t, err, want)
	}
}

// awaitAdmission waits until the API server asks virt-controller, which it does
// not while it starts.
func (s space) awaitAdmission() {
	s.t.Helper()
	v := guest("probe", cloudConfig("hostname: probe"))
	v.Namespace = s.name
	v.Spec.Domain.Devices.Disks = nil
	eventually(s.t, soon, func() error {
		v, err := world.vmis.VirtualMachineInstances(s.name).Create(s.t.Context(), v, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && len(v.Spec.Domain.Devices.Disks) == 0 {
			err = errors.New("the VMI was not completed")
		}
		return err
	})
}

func TestAVMIIsStoredWithAllThatWasLeftOut(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	sparse := guest("sparse", cloudConfig("hostname: sparse"))
	sparse.Spec.Domain.Devices.Disks, sparse.Spec.Domain.Devices.Interfaces, sparse.Spec.Networks = nil, nil, nil
	sparse.Spec.Domain.Devices.AutoattachPodInterface = nil
	s.awaitAdmission()
	v := s.create(sparse)
	require.Len(t, v.Spec.Domain.Devices.Disks, len(v.Spec.Volumes))
	require.Len(t, v.Spec.Domain.Devices.Interfaces, 1)
	require.Equal(t, defaults.Instance(v, defaults.Profile{}).Spec.Domain.Devices.Disks, v.Spec.Domain.Devices.Disks)
	s.awaitPhase("sparse", vmi.PhaseRunning)
	s.awaitConsole(v, ready)
}
