package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// The status says that the VMI has the launcher of an older version, as after an upgrade.
func TestAVMIWithAnOutdatedLauncherIsMoved(t *testing.T) {
	s := newSpace(t)
	s.service("outdated")
	seen := s.newVisitor()
	s.create(guest("outdated", cloudConfig("hostname: outdated"), vmitest.WithGracePeriod(1)))
	v := s.awaitSteady("outdated")
	boot, from, image := seen.awaitPage("http://outdated/boot-id"), v.Status.NodeName, v.Status.LauncherContainerImageVersion
	s.setLauncher(v.Name, "example/virt-launcher:older")
	specify(t, func(k *vmi.KubeVirtSpec) {
		k.WorkloadUpdateStrategy = &vmi.WorkloadUpdateStrategy{WorkloadUpdateMethods: []vmi.WorkloadUpdateMethod{vmi.WorkloadUpdateLiveMigrate}}
	})
	eventually(t, long, func() error {
		v = s.get("outdated")
		if _, is := v.Labels[vmi.OutdatedLauncherLabel]; is || v.Status.NodeName == from || v.Status.LauncherContainerImageVersion != image {
			return fmt.Errorf("it is on %s with %s, and has the labels %v", v.Status.NodeName, v.Status.LauncherContainerImageVersion, v.Labels)
		}
		return nil
	})
	require.Equal(t, boot, seen.awaitPage("http://outdated/boot-id"), "the guest did not boot anew")
	l, err := world.vmis.VirtualMachineInstanceMigrations(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, l.Items, 1)
	require.True(t, strings.HasPrefix(l.Items[0].Name, vmi.UpdateNamePrefix), l.Items[0].Name)
	eventually(t, soon, func() error {
		k, err := world.vmis.KubeVirts("kubevirt").Get(t.Context(), "kubevirt", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n := k.Status.OutdatedVirtualMachineInstanceWorkloads; n == nil || *n != 0 {
			return fmt.Errorf("the status counts %v outdated VMIs", n)
		}
		return nil
	})
}

// setLauncher makes the status say that the VMI runs in a launcher of this image.
func (s space) setLauncher(name, image string) {
	s.t.Helper()
	cfg := rest.CopyConfig(world.config)
	cfg.Impersonate.UserName = "system:serviceaccount:" + install.Namespace + ":virt-controller"
	c, err := client.New(cfg)
	require.NoError(s.t, err)
	eventually(s.t, soon, func() error {
		v := s.get(name)
		changed := v.DeepCopy()
		changed.Status.LauncherContainerImageVersion = image
		_, err := client.WriteStatus(s.t.Context(), c.VirtualMachineInstances(s.name), v, changed)
		return err
	})
}
