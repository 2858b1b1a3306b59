package vmi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

func TestWhatPodsAndClaimsAreMadeOfHasTheTypesOfCoreV1(t *testing.T) {
	var (
		spec   vmi.VirtualMachineInstanceSpec
		probe  vmi.Probe
		claim  vmi.PersistentVolumeClaimInfo
		volume vmi.DataVolumeSpec
		store  vmi.DataVolumeStorage
	)
	for name, tt := range map[string]struct{ want, got any }{
		"affinity":                  {&corev1.Affinity{}, spec.Affinity},
		"tolerations":               {[]corev1.Toleration{}, spec.Tolerations},
		"spread constraints":        {[]corev1.TopologySpreadConstraint{}, spec.TopologySpreadConstraints},
		"DNS policy":                {corev1.DNSDefault, spec.DNSPolicy},
		"DNS configuration":         {&corev1.PodDNSConfig{}, spec.DNSConfig},
		"resource requests":         {corev1.ResourceList{}, spec.Domain.Resources.Requests},
		"probe by command":          {&corev1.ExecAction{}, probe.Exec},
		"probe by HTTP":             {&corev1.HTTPGetAction{}, probe.HTTPGet},
		"probe by TCP":              {&corev1.TCPSocketAction{}, probe.TCPSocket},
		"pull policy":               {corev1.PullAlways, vmi.ContainerDisk{}.ImagePullPolicy},
		"claim volume":              {corev1.PersistentVolumeClaimVolumeSource{}, vmi.PersistentVolumeClaimVolume{}.PersistentVolumeClaimVolumeSource},
		"ephemeral volume":          {&corev1.PersistentVolumeClaimVolumeSource{}, vmi.EphemeralVolume{}.PersistentVolumeClaim},
		"config map volume":         {corev1.LocalObjectReference{}, vmi.ConfigMapVolume{}.LocalObjectReference},
		"secret of cloud-init":      {&corev1.LocalObjectReference{}, vmi.CloudInitNoCloud{}.UserDataSecretRef},
		"downward API":              {[]corev1.DownwardAPIVolumeFile{}, vmi.DownwardAPIVolume{}.Fields},
		"claim of a DataVolume":     {&corev1.PersistentVolumeClaimSpec{}, volume.PVC},
		"size of a DataVolume":      {corev1.VolumeResourceRequirements{}, store.Resources},
		"source of a claim":         {&corev1.TypedObjectReference{}, store.DataSourceRef},
		"access modes of a claim":   {[]corev1.PersistentVolumeAccessMode{}, claim.AccessModes},
		"mode of a claim":           {new(corev1.PersistentVolumeBlock), claim.VolumeMode},
		"status of a condition":     {corev1.ConditionTrue, vmi.Condition{}.Status},
		"quality-of-service class":  {new(corev1.PodQOSBurstable), vmi.VirtualMachineInstanceStatus{}.QOSClass},
		"pull policy of a launcher": {corev1.PullAlways, vmi.KubeVirtConfiguration{}.ImagePullPolicy},
	} {
		t.Run(name, func(t *testing.T) { require.IsType(t, tt.want, tt.got) })
	}
}
