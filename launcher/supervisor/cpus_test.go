package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

func TestTheCPUsOfThePodAreThoseThatItsProcessesMayUse(t *testing.T) {
	t.Parallel()
	all, err := hostCPUs("/sys")
	require.NoError(t, err)
	require.NotEmpty(t, all)

	sysfs := t.TempDir()
	for path, text := range map[string]string{"topology/core_id": "5\n", "topology/physical_package_id": "1\n", "node3/x": ""} {
		path = filepath.Join(sysfs, "devices/system/cpu/cpu9", path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.Equal(t, domain.HostCPU{ID: 9, Core: 5, Package: 1, Node: 3}, hostCPU(sysfs, 9))
	require.Equal(t, domain.HostCPU{ID: 8, Core: 8}, hostCPU(sysfs, 8))
}

func TestTheMemoryOfThePodIsOfTheNUMANodesThatItsProcessesMayUse(t *testing.T) {
	t.Parallel()
	real, err := memoryNodes("/proc/self/status")
	require.NoError(t, err)
	require.NotEmpty(t, real)
	for text, want := range map[string][]int{
		"Name:\tx\nMems_allowed_list:\t0-2,5\n": {0, 1, 2, 5},
		"Name:\tx\n":                            {0},
		"Mems_allowed_list:\tall\n":             nil,
		"Mems_allowed_list:\t1-x\n":             nil,
	} {
		file := filepath.Join(t.TempDir(), "status")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		have, err := memoryNodes(file)
		require.Equal(t, want, have)
		require.Equal(t, want == nil, err != nil)
	}
}

// threads are the CPUs that each thread of QEMU may use, by the thread's name.
func (p *pod) threads() map[string]string {
	p.Helper()
	all := map[string]string{}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.process("qemu-system-x86_64")))
	require.NoError(p, err)
	for _, task := range tasks {
		name, err := os.ReadFile(filepath.Join(task, "comm"))
		if err != nil {
			continue // a worker that has ended
		}
		status, err := os.ReadFile(filepath.Join(task, "status"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
		cpus, _, _ := strings.Cut(rest, "\n")
		all[strings.TrimSpace(string(name))] = cpus
	}
	return all
}

func TestAProcessorWithADedicatedCPURunsOnItAndTheRestOfQEMUOnAnother(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	for name, tt := range map[string]struct {
		cpus, rest string
		isolate    bool
	}{"with a CPU for the emulator": {"0-1", "1", true}, "with one CPU for both": {"0", "0", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, bootable(), "CPUS="+tt.cpus)
			v := instance()
			v.Spec.Domain.CPU = &vmi.CPU{Cores: 1, DedicatedCPUPlacement: true, IsolateEmulatorThread: tt.isolate}
			v.Spec.Domain.Devices.Disks[0].DedicatedIOThread = new(true)
			require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
			p.phase(protocol.Running)
			p.says("test guest is up", 1)
			threads := p.threads()
			require.Equal(t, "0", threads["CPU 0/TCG"], threads)
			require.Equal(t, tt.rest, threads["qemu-system-x86"], threads)
			require.Equal(t, tt.rest, threads["IO iothread1"], threads)
		})
	}
}

func TestADedicatedCPUThatThePodDoesNotHaveIsTheEnd(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable(), "CPUS=0")
	v := instance()
	v.Spec.Domain.CPU = &vmi.CPU{Cores: 2, DedicatedCPUPlacement: true}
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.reports("why it does not start", func(s protocol.State) bool {
		return s.Finding != nil && strings.Contains(s.Finding.Message, "the pod has 1 CPUs for itself and the guest needs 2")
	})
}

func TestAnInterfaceWithoutAFunctionOfTheNodeSaysWhatToAskFor(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	v := instance()
	v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "fast", InterfaceBinding: vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}}}
	v.Spec.Networks = []vmi.Network{{Name: "fast", NetworkSource: vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: "infra/fast"}}}}
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v, Interfaces: []network.Attachment{{Name: "fast"}}}))
	p.reports("why it does not start", func(s protocol.State) bool {
		return s.Finding != nil && strings.Contains(s.Finding.Message, "no device plugin gave the pod a device for the network infra/fast: give the NetworkAttachmentDefinition the annotation k8s.v1.cni.cncf.io/resourceName")
	})
}

func TestTheDevicesOfThePodAreInItsEnvironment(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{"PCI_RESOURCE_A": "0000:01:00.0", "MDEV_PCI_RESOURCE_B": "x", "PCIDEVICE_C": "0000:02:00.0", "KUBEVIRT_RESOURCE_NAME_fast": "c"},
		hostDevices([]string{"PATH=/bin", "PCI_RESOURCE_A=0000:01:00.0", "MDEV_PCI_RESOURCE_B=x", "PCIDEVICE_C=0000:02:00.0", "KUBEVIRT_RESOURCE_NAME_fast=c", "OTHER_PCI_RESOURCE_A=y"}))
}
