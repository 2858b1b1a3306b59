package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestWhatManifestsNameIsFoundOnce(t *testing.T) {
	t.Parallel()
	all := []example{
		{text: "  - containerDisk:\n      image: registry:5000/a:devel\n    name: x\n  - persistentVolumeClaim:\n      claimName: disk\n"},
		{text: "- image: \"registry:5000/a:devel\"\n- image: b\n# image\nimagePullPolicy: Always\n"},
	}
	require.Equal(t, []string{"registry:5000/a:devel", "b"}, named(all, imageIn))
	require.Equal(t, []string{"disk"}, named(all, claimIn))
}

func TestWhatAnExampleNeedsIsMade(t *testing.T) {
	t.Parallel()
	e := example{text: "  - multus:\n      networkName: ptp-conf\n  - multus:\n      networkName: sriov/other\n  - persistentVolumeClaim:\n      claimName: disk\n"}
	var kinds []string
	for _, text := range e.needs() {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object))
		kinds = append(kinds, object.Kind+" "+object.Metadata.Name)
	}
	require.Equal(t, []string{"PersistentVolumeClaim disk", "NetworkAttachmentDefinition ptp-conf"}, kinds)
}

func TestWhatBecameOfAnExample(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]example{
		"refused: no":                      {refused: "no"},
		"applies; it has no VMI":           {},
		"applies: Running a":               {states: []string{"Running a"}},
		"applies; started: Failed a x":     {states: []string{"Failed a x"}, started: true},
		"applies: Running a; Scheduling b": {states: []string{"Running a", "Scheduling b"}},
	} {
		require.Equal(t, want, e.String())
	}
	require.True(t, example{states: []string{"Running a", "Running b"}}.runs())
	require.False(t, example{states: []string{"Running a", "Scheduling b"}}.runs())
	require.False(t, example{}.runs())
	require.Equal(t, "example-vmi-pvc", example{name: "vmi-pvc.yaml"}.namespace())
}
