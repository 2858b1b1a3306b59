package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// TestTheConfigurationReachesGuestsAndComponents does not run beside the others:
// what it configures is every VMI's.
func TestTheConfigurationReachesGuestsAndComponents(t *testing.T) {
	s := newSpace(t)
	s.service("web")
	seen := s.newVisitor()
	configure(t, func(c *vmi.KubeVirtConfiguration) {
		c.SMBIOS = &vmi.SMBIOSConfiguration{Manufacturer: "Acme"}
		d := c.DeveloperConfiguration
		d.UseEmulation, d.FeatureGates, d.LogVerbosity = new(true), []string{"HostDisk"}, &vmi.LogVerbosity{VirtLauncher: 4}
		c.ArchitectureConfiguration = &vmi.ArchitectureConfiguration{AMD64: &vmi.ArchitectureSettings{MachineType: "pc-q35-6.2"}}
		c.CPUModel = vmi.CPUModelPassthrough
		c.Network = &vmi.NetworkConfiguration{DefaultNetworkInterface: "masquerade"}
	})
	var k *vmi.KubeVirt
	eventually(t, long, func() (err error) {
		if k, err = world.vmis.KubeVirts("kubevirt").Get(t.Context(), "kubevirt", metav1.GetOptions{}); err != nil {
			return err
		}
		if c := k.Status.Condition(vmi.ConditionAvailable); c == nil || c.Status != corev1.ConditionTrue || k.Status.Phase != vmi.KubeVirtPhaseDeployed {
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
	v := s.awaitPhase("web", vmi.PhaseRunning)
	require.Equal(t, "pc-q35-6.2", v.Status.Machine.Type)
	require.Len(t, v.Spec.Domain.Devices.Interfaces, 1)
	require.NotNil(t, v.Spec.Domain.Devices.Interfaces[0].Masquerade, "the default of the cluster")
	require.Equal(t, "Acme", strings.TrimSpace(seen.awaitPage("http://web/vendor")))
	log, err := world.kube.CoreV1().Pods(s.name).GetLogs(s.pod(v).Name, &corev1.PodLogOptions{Container: vmi.ComputeContainer}).DoRaw(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(log), `"level":"DEBUG"`)
	s.seeHostDisks()
}

// seeHostDisks starts a guest with disks in files of a node, in a namespace that allows
// folders of the node, and once the policy allows the folder.
func (s space) seeHostDisks() {
	s.t.Helper()
	const folder, binding = "/run/disks", "validatingadmissionpolicy/virt-controller.kubevirt.io"
	n := traces{t: s.t, node: "n1"}
	n.run("install -d -o 107 -g 107 " + folder + " && truncate -s 8M " + folder + "/there.img && chown 107:107 " + folder + "/there.img")
	s.kubectl("label", "--overwrite", "namespace", s.name, "pod-security.kubernetes.io/enforce=privileged")
	on := func(name string, disk vmi.HostDisk) vmitest.Option {
		disk.Path = folder + "/" + strings.TrimPrefix(name, "claim-") + ".img"
		return withVolume(name, vmi.VolumeSource{HostDisk: &disk})
	}
	made := vmi.HostDisk{Type: vmi.HostDiskExistsOrCreate, Capacity: new(resource.MustParse("16Mi"))}
	v := guest("hosted", onClaims, on("claim-there", vmi.HostDisk{Type: vmi.HostDiskExists}), on("claim-made", made), onNode("n1"), vmitest.WithGracePeriod(1))
	s.create(v)
	s.awaitReason("hosted", "FailedCreate")
	require.Contains(s.t, s.get("hosted").Status.Condition(vmi.ConditionSynchronized).Message, "variable hostDisks")

	patch := func(value string) {
		out, err := world.kubectl.Run(context.Background(), "patch", binding, "--type=json", "-p",
			fmt.Sprintf(`[{"op":"test","path":"/spec/variables/2/name","value":"hostDisks"},{"op":"replace","path":"/spec/variables/2/expression","value":%q}]`, value))
		require.NoError(s.t, err, out)
	}
	before := s.kubectl("get", binding, "-o", "jsonpath={.spec.variables[2].expression}")
	patch("['" + folder + "']")
	s.t.Cleanup(func() { patch(before) })
	console := s.awaitConsole(s.awaitPhase("hosted", vmi.PhaseRunning), "claims are written")
	require.Contains(s.t, console, "claim-there of 16384 sectors holds []")
	require.Contains(s.t, console, "claim-made of 32768 sectors holds []")
	require.Equal(s.t, "kept!kept!", n.run("head -c 5 "+folder+"/there.img; head -c 5 "+folder+"/made.img"))
}
