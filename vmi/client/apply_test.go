package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/applyconfiguration"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAConfigurationThatIsNotOfTheKindIsNotSent(t *testing.T) {
	_, c := play(t)
	vms := c.VirtualMachines("default")
	nameless := applyconfiguration.VirtualMachine("", "default")
	for name, tt := range map[string]struct {
		configuration client.ApplyConfiguration
		want          string
	}{
		"nil":             {nil, "apply VirtualMachine: the configuration is nil"},
		"without a name":  {nameless, "apply VirtualMachine: the configuration has no name"},
		"of another kind": {applyconfiguration.VirtualMachineInstance("a", "default"), `apply VirtualMachine: the configuration is of the kind "VirtualMachineInstance" and apiVersion "kubevirt.io/v1", and not of "VirtualMachine" and "kubevirt.io/v1"`},
		"of another version": {applyconfiguration.VirtualMachine("a", "default").WithAPIVersion("kubevirt.io/v2"),
			`apply VirtualMachine: the configuration is of the kind "VirtualMachine" and apiVersion "kubevirt.io/v2", and not of "VirtualMachine" and "kubevirt.io/v1"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := vms.Apply(t.Context(), tt.configuration, metav1.ApplyOptions{FieldManager: "m"})
			require.EqualError(t, err, tt.want)
			require.Nil(t, got)
		})
	}
}

func TestAStatusIsAppliedApart(t *testing.T) {
	_, c := play(t, vmitest.NewVM(vmi.RunHalted))
	vms := c.VirtualMachines("default")
	opts := metav1.ApplyOptions{FieldManager: "m"}
	a := applyconfiguration.VirtualMachine("testvmi", "default").WithLabels(map[string]string{"a": "b"}).
		WithStatus(applyconfiguration.VirtualMachineStatus().WithCreated(true))
	v, err := vms.Apply(t.Context(), a, opts)
	require.NoError(t, err)
	require.False(t, v.Status.Created)
	require.Equal(t, "b", v.Labels["a"])
	v, err = vms.ApplyStatus(t.Context(), a, opts)
	require.NoError(t, err)
	require.True(t, v.Status.Created)

	_, err = vms.ApplyStatus(t.Context(), applyconfiguration.VirtualMachine("other", "default"), opts)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
