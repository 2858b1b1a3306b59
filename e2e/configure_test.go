package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// TestTheConfigurationReachesGuestsAndComponents does not run beside the others:
// what it configures is every VMI's.
func TestTheConfigurationReachesGuestsAndComponents(t *testing.T) {
	s := newSpace(t)
	s.service("web")
	seen := s.newVisitor()
	all := world.vmis.KubeVirts("kubevirt")
	k := &vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"}}
	k.Spec.Configuration.SMBIOS = &vmi.SMBIOSConfiguration{Manufacturer: "Acme"}
	k.Spec.Configuration.DeveloperConfiguration = &vmi.DeveloperConfiguration{UseEmulation: new(true), LogVerbosity: &vmi.LogVerbosity{VirtLauncher: 4}}
	k.Spec.Configuration.ArchitectureConfiguration = &vmi.ArchitectureConfiguration{AMD64: &vmi.ArchitectureSettings{MachineType: "pc-q35-6.2"}}
	k.Spec.Configuration.CPUModel = vmi.CPUModelPassthrough
	k.Spec.Configuration.Network = &vmi.NetworkConfiguration{DefaultNetworkInterface: "masquerade"}
	_, err := all.Create(t.Context(), k, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = all.Delete(context.Background(), k.Name, metav1.DeleteOptions{}) })
	eventually(t, long, func() (err error) {
		if k, err = all.Get(t.Context(), k.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		if c := k.Status.Condition(vmi.ConditionAvailable); c == nil || c.Status != corev1.ConditionTrue || k.Status.Phase != vmi.KubeVirtDeployed {
			return fmt.Errorf("status %+v", k.Status)
		}
		return nil
	})
	pods, err := world.kube.CoreV1().Pods("kubevirt").List(t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io in (virt-controller, virt-handler)"})
	require.NoError(t, err)
	require.Len(t, pods.Items, 4)
	for _, p := range pods.Items {
		eventually(t, soon, func() error {
			raw, err := world.kube.CoreV1().Pods("kubevirt").ProxyGet("https", p.Name, "8443", "//healthz", nil).DoRaw(t.Context())
			if err != nil {
				return err
			}
			var facts map[string]string
			if err := json.Unmarshal(raw, &facts); err != nil || facts["config-resource-version"] != k.ResourceVersion {
				return fmt.Errorf("%s, %w", raw, err)
			}
			return nil
		})
	}

	g := guest("web", cloudConfig("runcmd:", "- cat /sys/class/dmi/id/sys_vendor > /www/.vendor && mv /www/.vendor /www/vendor"))
	g.Spec.Domain.Devices.Interfaces, g.Spec.Networks = nil, nil
	g.Spec.Domain.Devices.AutoattachPodInterface = nil
	s.create(g)
	v := s.awaitPhase("web", vmi.Running)
	require.Equal(t, "pc-q35-6.2", v.Status.Machine.Type)
	require.Equal(t, "Acme", strings.TrimSpace(seen.awaitPage("http://web/vendor")))
	log, err := world.kube.CoreV1().Pods(s.name).GetLogs(s.pod(v).Name, &corev1.PodLogOptions{Container: vmi.ComputeContainer}).DoRaw(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(log), `"level":"DEBUG"`)
}
