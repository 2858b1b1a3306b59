package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

func TestTheVMIsOfAManifestAreThoseOfItsTemplatesToo(t *testing.T) {
	all, err := Instances([]byte(`
apiVersion: v1
kind: Service
metadata: {name: other}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: one, namespace: shop, uid: "1"}
spec: {domain: {memory: {guest: 64Mi}, devices: {}}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: two, labels: {of: vm}}
spec:
  runStrategy: Halted
  template:
    metadata: {labels: {of: vmi}}
    spec: {domain: {memory: {guest: 65Mi}, devices: {}}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceReplicaSet
metadata: {generateName: three-}
spec:
  selector: {matchLabels: {of: set}}
  template:
    metadata: {labels: {of: set}}
    spec: {domain: {memory: {guest: 66Mi}, devices: {}}}
`), kinds.Cluster{})
	require.NoError(t, err)
	require.Len(t, all, 3)
	for i, want := range []struct{ name, of, guest string }{
		{"shop/one", "", "64Mi"},
		{"default/two", "vmi", "65Mi"},
		{"default/three-", "set", "66Mi"},
	} {
		v := all[i]
		require.Equal(t, want.name, v.Namespace+"/"+v.Name)
		require.Equal(t, want.of, v.Labels["of"])
		require.Equal(t, want.guest, v.Spec.Domain.Memory.Guest.String())
		require.NotEmpty(t, v.UID)
		require.NotEmpty(t, v.Spec.Architecture, "it is complete")
		require.NotEmpty(t, v.Spec.Networks, "as a VMI and not only as a template")
	}
	require.EqualValues(t, "1", all[0].UID)
}

func TestEveryFaultOfAManifestIsALine(t *testing.T) {
	all, err := Instances([]byte(`
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: one}
spec: {domain: {devices: {nosuch: 1, disks: [{name: root}]}}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: two}
spec: {evictionStrategy: Never, domain: {devices: {}}}
`), kinds.Cluster{})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.Empty(t, all)
	lines := strings.Split(err.Error(), "\n")
	require.GreaterOrEqual(t, len(lines), 3, err)
	for _, l := range lines {
		require.Regexp(t, `^VirtualMachineInstance/(one|two): [a-zA-Z0-9.\[\]]+: `, l)
	}
	_, err = Instances([]byte("apiVersion: v1\nkind: [}"), kinds.Cluster{})
	require.ErrorIs(t, err, vmi.ErrInvalid)
}
