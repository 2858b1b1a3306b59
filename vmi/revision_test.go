package vmi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

func TestTheNameOfARevisionNamesItsVM(t *testing.T) {
	const uid types.UID = "0d8f5e2b-1f5c-4bd0-9d5b-7c1f1f7f9f5e"
	name := vmi.StartRevision(uid, 7)
	require.Equal(t, "revision-start-vm-0d8f5e2b-1f5c-4bd0-9d5b-7c1f1f7f9f5e-7", name)
	require.Equal(t, uid, vmi.StartedVM(name))
	for _, other := range []string{"", "web-1", "revision-start-vm-", "x-" + name} {
		require.Empty(t, vmi.StartedVM(other), other)
	}
}

func TestTheGenerationThatAVMIWasStartedFrom(t *testing.T) {
	v := &vmi.VirtualMachineInstance{}
	require.Zero(t, vmi.StartGeneration(v))
	for text, want := range map[string]int64{"7": 7, "0": 0, "-1": 0, "x": 0, "99999999999999999999": 0} {
		v.Annotations = map[string]string{vmi.VMGenerationAnnotation: text}
		require.Equal(t, want, vmi.StartGeneration(v), text)
	}
}
