package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
)

const sizes = `
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineInstancetype
metadata: {name: small}
spec: {cpu: {guest: 2}, memory: {guest: 1Gi}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineClusterPreference
metadata: {name: linux}
spec: {requirements: {cpu: {guest: 2}}, devices: {preferredDiskBus: virtio}}
`

func sized(instancetype, domain string) string {
	return `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  runStrategy: Always
  instancetype: {kind: VirtualMachineInstancetype, name: ` + instancetype + `}
  preference: {name: linux}
  template: {spec: {domain: ` + domain + `, volumes: [{name: root, containerDisk: {image: example/disk:1}}]}}
`
}

func TestAVMIsCheckedWithWhatItsClaimNames(t *testing.T) {
	t.Parallel()
	const claim = `
kind: PersistentVolumeClaim
apiVersion: v1
metadata: {name: disk, labels: {instancetype.kubevirt.io/default-instancetype: small, instancetype.kubevirt.io/default-instancetype-kind: VirtualMachineInstancetype}}
`
	const inferring = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  runStrategy: Always
  instancetype: {inferFromVolume: root}
  template: {spec: {domain: {devices: {}}, volumes: [{name: root, persistentVolumeClaim: {claimName: disk}}]}}
`
	last := func(data string, others ...vmi.Object) manifest.Object {
		t.Helper()
		all, err := manifest.Check([]byte(data), kinds.Cluster{}, others...)
		require.NoError(t, err)
		return all[len(all)-1]
	}
	o := last(sizes + "---" + claim + "---" + inferring)
	require.Empty(t, o.Faults)
	require.Empty(t, o.Notes)
	require.Equal(t, uint32(2), o.Complete.(*vmi.VirtualMachine).Spec.Template.Spec.Domain.CPU.Sockets)

	others, err := manifest.Sizes([]byte(sizes + "---" + claim))
	require.NoError(t, err)
	require.Len(t, others, 3)
	require.Nil(t, last(inferring, others...).Complete.(*vmi.VirtualMachine).Spec.Instancetype)

	o = last(sizes + "---" + inferring)
	require.Empty(t, o.Faults)
	require.Equal(t, []string{"judged without what the labels of PersistentVolumeClaim disk name, which is in none of the files"}, o.Notes)

	o = last(strings.ReplaceAll(claim, "default-instancetype:", "other:") + "---" + inferring)
	require.Len(t, o.Faults, 1)
	require.Equal(t, "spec.instancetype.inferFromVolume", o.Faults[0].Field)
}

func TestAVMIsCheckedWithWhatItNames(t *testing.T) {
	t.Parallel()
	last := func(data string, others ...vmi.Object) manifest.Object {
		t.Helper()
		all, err := manifest.Check([]byte(data), kinds.Cluster{}, others...)
		require.NoError(t, err)
		return all[len(all)-1]
	}
	o := last(sizes + "---" + sized("small", "{devices: {}}"))
	require.Empty(t, o.Faults)
	require.Empty(t, o.Notes)
	v := o.Complete.(*vmi.VirtualMachine)
	require.Nil(t, v.Spec.Instancetype)
	require.Nil(t, v.Spec.Preference)
	require.Equal(t, uint32(2), v.Spec.Template.Spec.Domain.CPU.Sockets)
	require.Equal(t, vmi.DiskBusVirtio, v.Spec.Template.Spec.Domain.Devices.Disks[0].Disk.Bus)
	require.Equal(t, "1Gi", o.Instance(kinds.Cluster{}).Spec.Domain.Memory.Guest.String())

	o = last(sizes + "---" + sized("small", "{devices: {}, memory: {guest: 1Gi}}"))
	require.Len(t, o.Faults, 1)
	require.Equal(t, "spec.template.spec.domain.memory.guest", o.Faults[0].Field)
	require.NotNil(t, o.Complete.(*vmi.VirtualMachine).Spec.Instancetype)

	other, err := manifest.Sizes([]byte(sizes))
	require.NoError(t, err)
	require.Len(t, other, 2)
	require.NotNil(t, last(sized("small", "{devices: {}}"), other...).Complete.(*vmi.VirtualMachine).Spec.Template.Spec.Domain.CPU)

	o = last(sized("small", "{devices: {}}"))
	require.Empty(t, o.Faults)
	require.Equal(t, []string{
		"judged without what spec.instancetype names, which is in none of the files",
		"judged without what spec.preference names, which is in none of the files",
	}, o.Notes)
}

func TestAPoolIsCheckedWithWhatItsVMsName(t *testing.T) {
	t.Parallel()
	last := func(data string) manifest.Object {
		t.Helper()
		all, err := manifest.Check([]byte(data), kinds.Cluster{})
		require.NoError(t, err)
		return all[len(all)-1]
	}
	pool := func(domain string) string {
		return `
apiVersion: pool.kubevirt.io/v1beta1
kind: VirtualMachinePool
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  virtualMachineTemplate:
    metadata: {labels: {app: web}}
    spec:
      runStrategy: Always
      instancetype: {kind: VirtualMachineInstancetype, name: small}
      preference: {name: linux}
      template: {metadata: {labels: {app: web}}, spec: {domain: ` + domain + `, volumes: [{name: root, containerDisk: {image: example/disk:1}}]}}
`
	}
	o := last(sizes + "---" + pool("{devices: {}}"))
	require.Empty(t, o.Faults)
	require.Empty(t, o.Notes)
	require.Equal(t, "1Gi", o.Instance(kinds.Cluster{}).Spec.Domain.Memory.Guest.String())

	o = last(sizes + "---" + pool("{devices: {}, memory: {guest: 1Gi}}"))
	require.Len(t, o.Faults, 1)
	require.Equal(t, "spec.virtualMachineTemplate.spec.template.spec.domain.memory.guest", o.Faults[0].Field)

	o = last(pool("{devices: {}}"))
	require.Empty(t, o.Faults)
	require.Equal(t, []string{
		"judged without what spec.virtualMachineTemplate.spec.instancetype names, which is in none of the files",
		"judged without what spec.virtualMachineTemplate.spec.preference names, which is in none of the files",
	}, o.Notes)
}
