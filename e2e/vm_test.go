package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// applyVM writes a VM whose VMIs are like v, as a user does.
func (s space) applyVM(strategy vmi.RunStrategy, v *vmi.VirtualMachineInstance, change ...func(*vmi.VirtualMachine)) {
	s.t.Helper()
	vm := vmitest.NewVM(strategy, vmitest.WithName(v.Name))
	vm.ObjectMeta = metav1.ObjectMeta{Name: v.Name}
	vm.Spec.Template.ObjectMeta = metav1.ObjectMeta{Labels: v.Labels}
	vm.Spec.Template.Spec = v.Spec
	for _, c := range change {
		c(vm)
	}
	text, err := json.Marshal(vm)
	require.NoError(s.t, err)
	s.apply(string(text))
}

func (s space) getVM(name string) *vmi.VirtualMachine {
	s.t.Helper()
	v, err := world.vmis.VirtualMachines(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return v
}

func (s space) awaitVM(name, what string, ok func(*vmi.VirtualMachine) bool) *vmi.VirtualMachine {
	s.t.Helper()
	var v *vmi.VirtualMachine
	eventually(s.t, long, func() error {
		if v = s.getVM(name); !ok(v) {
			return fmt.Errorf("VM %s is not %s: %+v", name, what, v.Status)
		}
		return nil
	})
	return v
}

func (s space) awaitPrintable(name string, p vmi.PrintableStatus) {
	s.t.Helper()
	s.awaitVM(name, string(p), func(v *vmi.VirtualMachine) bool { return v.Status.PrintableStatus == p })
}

func (s space) setStrategy(name string, p vmi.RunStrategy) {
	s.t.Helper()
	s.kubectl("patch", "vm", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"runStrategy":%q}}`, p))
}

// ask writes requests as the calls start, stop and restart do: to the status, as
// virt-controller.
func (s space) ask(name string, requests ...vmi.StateChangeRequest) {
	s.t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", world.cluster.Kubeconfig)
	require.NoError(s.t, err)
	cfg.Impersonate.UserName = "system:serviceaccount:" + install.Namespace + ":virt-controller"
	c, err := client.New(cfg)
	require.NoError(s.t, err)
	text, err := json.Marshal(map[string]any{"status": map[string]any{"stateChangeRequests": requests}})
	require.NoError(s.t, err)
	_, err = c.VirtualMachines(s.name).Patch(s.t.Context(), name, types.MergePatchType, text, metav1.PatchOptions{}, "status")
	require.NoError(s.t, err)
}

// next waits until another VMI of the name than before runs.
func (s space) next(name string, before types.UID) *vmi.VirtualMachineInstance {
	s.t.Helper()
	var v *vmi.VirtualMachineInstance
	eventually(s.t, long, func() error {
		var err error
		v, err = world.vmis.VirtualMachineInstances(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		if err == nil && (v.UID == before || v.Status.Phase != vmi.PhaseRunning) {
			err = fmt.Errorf("VMI %s is still %s or %s", name, v.UID, v.Status.Phase)
		}
		return err
	})
	return v
}

// boots limits the boot of a guest beside others that boot, without KVM.
const boots = 2 * long

// powerOff types poweroff into the guest.
func (s space) powerOff(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	eventually(s.t, boots, func() error {
		if !strings.Contains(s.console(v), "press Enter for a root shell") {
			return fmt.Errorf("the guest of %s has not booted", v.Name)
		}
		return nil
	})
	c := s.attach(v)
	c.types("\r")
	c.shows("root@")
	c.types("poweroff\r")
	c.ends()
}

// shown matches what a guest says about itself.
var shown = regexp.MustCompile(`identity: mac=(\S+) uuid=(\S+) serial=(\S+) end`)

// identity is the MAC address, the UUID and the serial number that the guest sees.
func (s space) identity(v *vmi.VirtualMachineInstance) string {
	s.t.Helper()
	var m []string
	eventually(s.t, boots, func() error {
		if m = shown.FindStringSubmatch(s.console(v)); m == nil {
			return fmt.Errorf("the guest of %s does not say what it is", v.Name)
		}
		return nil
	})
	require.Equal(s.t, v.Status.Interfaces[0].MAC, m[1])
	require.Equal(s.t, string(v.Spec.Domain.Firmware.UUID), strings.ToLower(m[2]))
	require.Equal(s.t, v.Spec.Domain.Firmware.Serial, m[3])
	return m[0]
}

// sayIdentity is cloud-init that has a guest say what it is and has.
func sayIdentity() string {
	return cloudConfig("runcmd:",
		`- ["sh", "-c", "echo \"has: processors=$(grep -c ^processor /proc/cpuinfo) cores=$(grep 'cpu cores' /proc/cpuinfo | sort -u | tr -dc 0-9) end\" > /dev/console"]`,
		`- ["sh", "-c", "echo \"identity: mac=$(cat /sys/class/net/eth0/address) uuid=$(cat /sys/class/dmi/id/product_uuid) serial=$(cat /sys/class/dmi/id/product_serial) end\" > /dev/console"]`)
}

// sized is an instance type and a preference of the namespace.
const sized = `
kind: VirtualMachineInstancetype
apiVersion: instancetype.kubevirt.io/v1beta1
metadata: {name: two}
spec:
  cpu: {guest: 2}
  memory: {guest: 136Mi}
---
kind: VirtualMachinePreference
apiVersion: instancetype.kubevirt.io/v1beta1
metadata: {name: cores}
spec:
  cpu: {preferredCPUTopology: cores}
`

// named has a VM name what sized makes, and say nothing of it itself.
func named(v *vmi.VirtualMachine) {
	v.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "two", Kind: "VirtualMachineInstancetype"}
	v.Spec.Preference = &vmi.PreferenceMatcher{Name: "cores", Kind: "VirtualMachinePreference"}
	v.Spec.Template.Spec.Domain.Memory = nil
}

// Every run strategy goes through a start, the guest's own power-off, its crash, a stop
// and the deletion. The guest sees the same MAC address, UUID and serial number every
// time. One has its size from an instance type, which is deleted before its second start.
func TestAVMOfEachRunStrategyStartsEndsAndStopsAsItSays(t *testing.T) {
	t.Parallel()
	start := vmi.StateChangeRequest{Action: vmi.StartRequest}
	crash := func(s space, v *vmi.VirtualMachineInstance) { s.traces(v).kill("qemu-system") }
	for strategy, life := range map[vmi.RunStrategy]func(space, string){
		vmi.RunAlways: func(s space, name string) {
			first := s.next(name, "")
			is := s.identity(first)
			s.powerOff(first)
			second := s.next(name, first.UID)
			crash(s, second)
			third := s.next(name, second.UID)
			require.Equal(s.t, is, s.identity(third))
			vm := s.awaitVM(name, "ready", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
			require.Nil(s.t, vm.Status.StartFailure, "its guests ran")
			require.Nil(s.t, vm.Spec.Template.Spec.Domain.Firmware, "the user's spec is not written")
			require.Empty(s.t, vm.Spec.Template.Spec.Domain.Devices.Interfaces[0].MacAddress)
			s.setStrategy(name, vmi.RunHalted)
			s.awaitPrintable(name, vmi.StatusStopped)
			s.awaitGone(third)
			s.setStrategy(name, vmi.RunAlways)
			require.Equal(s.t, first.Spec, s.next(name, third.UID).Spec)
		},
		vmi.RunRerunOnFailure: func(s space, name string) {
			first := s.next(name, "")
			s.powerOff(first)
			s.awaitPrintable(name, vmi.StatusStopped)
			s.awaitGone(first)
			s.ask(name, start)
			second := s.next(name, first.UID)
			crash(s, second)
			third := s.next(name, second.UID)
			s.awaitVM(name, "ready", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
			s.ask(name, vmi.StateChangeRequest{Action: vmi.StopRequest, UID: &third.UID})
			s.awaitPrintable(name, vmi.StatusStopped)
			s.awaitGone(third)
		},
		vmi.RunManual: func(s space, name string) {
			s.awaitVM(name, "seen", func(v *vmi.VirtualMachine) bool { return v.Status.RunStrategy == vmi.RunManual })
			s.awaitPrintable(name, vmi.StatusStopped)
			s.ask(name, start)
			first := s.next(name, "")
			s.powerOff(first)
			s.awaitPrintable(name, vmi.StatusStopped)
			require.Equal(s.t, first.UID, s.awaitPhase(name, vmi.PhaseSucceeded).UID, "it is kept")
			s.ask(name, start)
			second := s.next(name, first.UID)
			crash(s, second)
			require.Equal(s.t, second.UID, s.awaitPhase(name, vmi.PhaseFailed).UID, "it is kept")
			s.awaitPrintable(name, vmi.StatusStopped)
		},
		vmi.RunOnce: func(s space, name string) {
			first := s.next(name, "")
			eventually(s.t, boots, func() error {
				if !strings.Contains(s.console(first), "has: processors=2 cores=2 end") {
					return fmt.Errorf("the guest of %s does not say that it has what its instance type and its preference give", name)
				}
				return nil
			})
			s.powerOff(first)
			require.Equal(s.t, first.UID, s.awaitPhase(name, vmi.PhaseSucceeded).UID, "it is kept")
			s.awaitPrintable(name, vmi.StatusStopped)
			s.kubectl("delete", "vmf/two", "vmp/cores", "vmi/"+name)
			second := s.next(name, first.UID)
			require.Equal(s.t, first.Spec, second.Spec, "it is made from what the VM's revisions hold")
			require.Equal(s.t, "136Mi", second.Status.Memory.GuestAtBoot.String())
			crash(s, second)
			require.Equal(s.t, second.UID, s.awaitPhase(name, vmi.PhaseFailed).UID, "it is kept")
			s.awaitPrintable(name, vmi.StatusStopped)
		},
	} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			name := strings.ToLower(string(strategy))
			var change []func(*vmi.VirtualMachine)
			if strategy == vmi.RunOnce {
				s.apply(sized)
				change = append(change, named)
			}
			s.applyVM(strategy, guest(name, sayIdentity(), vmitest.WithGracePeriod(10)), change...)
			life(s, name)
			s.kubectl("delete", "vm", name)
			_, err := world.vmis.VirtualMachineInstances(s.name).Get(t.Context(), name, metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "the VM is there as long as its VMI: %v", err)
		})
	}
}

// Three VMs run while their templates are edited, which needs a restart and disturbs
// none. Then each is deleted in another way.
func TestRunningVMsAreEditedRestartedAndDeletedInEveryWay(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	ways := []string{"background", "foreground", "orphan"}
	before := map[string]*vmi.VirtualMachineInstance{}
	for _, name := range ways {
		s.applyVM(vmi.RunAlways, idle(name))
	}
	for _, name := range ways {
		s.awaitPrintable(name, vmi.StatusRunning)
		before[name] = s.get(name)
	}
	for _, name := range ways {
		s.kubectl("patch", "vm", name, "--type=merge", "-p", `{"spec":{"template":{"spec":{"hostname":"edited"}}}}`)
	}
	required := func(v *vmi.VirtualMachine) bool {
		c := v.Status.Condition(vmi.ConditionRestartRequired)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	for _, name := range ways {
		s.awaitVM(name, "to be restarted", required)
		now := s.get(name)
		require.Equal(t, before[name].UID, now.UID)
		require.Equal(t, before[name].Spec, now.Spec)
		require.Equal(t, before[name].Status.ActivePods, now.Status.ActivePods)
	}
	s.ask("background", vmi.StateChangeRequest{Action: vmi.StopRequest, UID: &before["background"].UID}, vmi.StateChangeRequest{Action: vmi.StartRequest})
	s.awaitVM("background", "restarted", func(v *vmi.VirtualMachine) bool { return v.Status.Ready && !required(v) })
	now := s.get("background")
	require.NotEqual(t, before["background"].UID, now.UID)
	require.Equal(t, "edited", now.Spec.Hostname)

	for _, name := range ways {
		s.kubectl("delete", "vm", name, "--cascade="+name)
	}
	for _, name := range ways[:2] {
		_, err := world.vmis.VirtualMachineInstances(s.name).Get(t.Context(), name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s: %v", name, err)
	}
	left := s.awaitPhase("orphan", vmi.PhaseRunning)
	require.Equal(t, before["orphan"].UID, left.UID)
	require.Empty(t, left.OwnerReferences)

	s.applyVM(vmi.RunAlways, idle("orphan"))
	s.awaitPrintable("orphan", vmi.StatusRunning)
	adopted := s.get("orphan")
	require.Equal(t, left.UID, adopted.UID)
	require.True(t, metav1.IsControlledBy(adopted, s.getVM("orphan")))
	require.Equal(t, left.Status.ActivePods, adopted.Status.ActivePods)
	s.kubectl("delete", "vm", "orphan")
	s.awaitGone(adopted)
}
