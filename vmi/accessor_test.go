package vmi_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

func TestTheRunStrategyIsReadFromEitherField(t *testing.T) {
	require.Equal(t, vmi.RunStrategy(""), (&vmi.VirtualMachineSpec{}).Strategy())
	require.Equal(t, vmi.RunAlways, (&vmi.VirtualMachineSpec{Running: new(true)}).Strategy())
	require.Equal(t, vmi.RunHalted, (&vmi.VirtualMachineSpec{Running: new(false)}).Strategy())
	require.Equal(t, vmi.RunOnce, (&vmi.VirtualMachineSpec{RunStrategy: new(vmi.RunOnce)}).Strategy())
}

func TestAReplicaSetHasOneReplicaByDefault(t *testing.T) {
	require.EqualValues(t, 1, (&vmi.VirtualMachineInstanceReplicaSetSpec{}).Wanted())
	require.EqualValues(t, 0, (&vmi.VirtualMachineInstanceReplicaSetSpec{Replicas: new(int32(0))}).Wanted())
}

func TestAFeatureIsOnWhenItIsNamedAndNotDisabled(t *testing.T) {
	var none *vmi.FeatureState
	require.False(t, none.On())
	require.True(t, (&vmi.FeatureState{}).On())
	require.True(t, (&vmi.FeatureState{Enabled: new(true)}).On())
	require.False(t, (&vmi.FeatureState{Enabled: new(false)}).On())
}

func TestAVolumeKnowsItsClaim(t *testing.T) {
	claim := corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}
	for name, s := range map[string]vmi.VolumeSource{
		"a claim":           {PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: claim}},
		"a data volume":     {DataVolume: &vmi.DataVolumeVolume{Name: "c"}},
		"an ephemeral disk": {Ephemeral: &vmi.EphemeralVolume{PersistentVolumeClaim: &claim}},
	} {
		require.Equal(t, "c", s.Claim(), name)
	}
	require.Empty(t, (&vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{}}).Claim())
}

func TestAMigrationNotesEachPhaseOnce(t *testing.T) {
	var s vmi.VirtualMachineInstanceMigrationStatus
	s.SetPhase(vmi.MigrationPhasePending, monday)
	s.SetPhase(vmi.MigrationPhasePending, tuesday)
	s.SetPhase(vmi.MigrationPhaseFailed, tuesday)
	require.Equal(t, []vmi.MigrationPhaseTimestamp{
		{Phase: vmi.MigrationPhasePending, PhaseTransitionTimestamp: monday},
		{Phase: vmi.MigrationPhaseFailed, PhaseTransitionTimestamp: tuesday},
	}, s.PhaseTransitionTimestamps)
	require.True(t, s.Phase.Final())
	require.False(t, vmi.MigrationPhaseRunning.Final())
}

func TestAGracePeriodWithoutAnEndIsLong(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for seconds, want := range map[int64]time.Duration{0: 0, 3600: time.Hour, 1 << 34: year, math.MaxInt64: year} {
		v := &vmi.VirtualMachineInstance{Spec: vmi.VirtualMachineInstanceSpec{TerminationGracePeriodSeconds: &seconds}}
		require.Equal(t, want, v.GracePeriod(), "%d", seconds)
	}
}

func TestTheHostNameOfAGuest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 62)
	for name, tt := range map[string]struct{ instance, hostname, want string }{
		"the VMI's name":               {"web", "", "web"},
		"the spec's":                   {"web", "other", "other"},
		"the first label of a name":    {"web.example.com", "", "web"},
		"a long name is cut":           {long + "bc", "", long + "b"},
		"it does not end with hyphens": {long + "-c", "", long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vmi.VirtualMachineInstance{}
			v.Name, v.Spec.Hostname = tt.instance, tt.hostname
			require.Equal(t, tt.want, v.Hostname())
		})
	}
}
