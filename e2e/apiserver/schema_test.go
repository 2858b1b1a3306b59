package apiserver

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// kubectl runs kubectl with a manifest as its input, and returns what it says.
func kubectl(t *testing.T, manifest string, args ...string) (string, error) {
	t.Helper()
	testenv.Root(t)
	require.NoError(t, world.err)
	c, err := cluster.Open(cluster.Config{Name: clusterName})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), c.Kubectl, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(manifest)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// awaitEstablished waits until the API server serves the kinds of the CustomResourceDefinitions
// that get, a "kubectl get -o json", returns. "kubectl wait" fails for one without conditions,
// which each is for a moment.
func awaitEstablished(t *testing.T, get func() (string, error)) {
	t.Helper()
	eventually(t, func() error {
		said, err := get()
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		type definition struct {
			metav1.ObjectMeta `json:"metadata"`
			Status            struct{ Conditions []metav1.Condition }
		}
		var all struct {
			definition
			Kind  string
			Items []definition
		}
		if err := json.Unmarshal([]byte(said), &all); err != nil {
			return err
		}
		if all.Kind != "List" {
			all.Items = append(all.Items, all.definition)
		}
		for _, d := range all.Items {
			if !meta.IsStatusConditionTrue(d.Status.Conditions, "Established") {
				return fmt.Errorf("CustomResourceDefinition %s is not established: %v", d.Name, d.Status.Conditions)
			}
		}
		return nil
	})
}

// The schemas of all typed fields, served or not: a field that is served
// tomorrow must not be the one that breaks the budget of the rules.
func TestTheSchemaOfEveryKindIsAccepted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gen := exec.CommandContext(t.Context(), "go", "run", "./internal/apigen", "-whole", dir)
	gen.Dir = "../.."
	out, err := gen.CombinedOutput()
	require.NoError(t, err, string(out))
	said, err := kubectl(t, "", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", dir)
	require.NoError(t, err, said)
	require.Equal(t, len(kinds.All()), strings.Count(said, "serverside-applied"), said)
}

func TestAFieldIsExplained(t *testing.T) {
	t.Parallel()
	said, err := kubectl(t, "", "explain", "vmi.spec.domain.devices.disks")
	require.NoError(t, err, said)
	for _, want := range []string{"FIELD: disks <[]Object>", "Each shows the volume of the same name", "bootOrder\t<integer>", "name\t<string> -required-"} {
		require.Contains(t, said, want)
	}
	said, err = kubectl(t, "", "explain", "vmi.spec.domain.devices.disks.disk.bus")
	require.NoError(t, err, said)
	require.Contains(t, said, "virtio is the fastest")
}

// A field that is not served is refused with its reason, whatever the client, also while
// no webhook answers. The object around it names it, and says where the reason is.
func TestAFieldThatIsNotServedIsNamedByItsObject(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	const with = "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: vm, namespace: %s}\nspec: {domain: {memory: {guest: 64Mi}, devices: {disks: [{name: a, lun: {reservation: true}}]}}, volumes: [{name: a, persistentVolumeClaim: {claimName: a, hotpluggable: true}}]}\n"
	said, err := kubectl(t, fmt.Sprintf(with, s.name), "create", "-f", "-")
	require.Error(t, err)
	for field, object := range map[string]string{"reservation": "vmi.spec.domain.devices.disks.lun", "hotpluggable": "vmi.spec.volumes.persistentVolumeClaim", "attestation": "vmi.spec.domain.launchSecurity.sev", "virtAPI": "kubevirt.spec.configuration.developerConfiguration.logVerbosity"} {
		if field == "reservation" || field == "hotpluggable" {
			require.Regexp(t, `spec\S*\.`+field+`: Invalid value: .*: not served yet: `, said)
		}
		explained, err := kubectl(t, "", "explain", object)
		require.NoError(t, err, explained)
		require.Regexp(t, `(?s)Not served: [^.]*\b`+field+`\b`, explained)
		require.Regexp(t, `Podvisor's\s+docs/fields\.md\s+and\s+its\s+program\s+check-manifest\s+say\s+why`, explained)
	}
	for _, validate := range []string{"warn", "ignore"} {
		said, err = kubectl(t, fmt.Sprintf(with, s.name), "create", "--validate="+validate, "-f", "-")
		require.Error(t, err, said)
		require.Contains(t, said, "not served yet: no helper for persistent reservations runs on the node")
	}
}

// A client that does not ask for strict validation, as client-go does by default, gets the
// sentence of check-manifest, and nothing of its object is dropped in silence.
func TestAFieldThatIsNotServedIsRefusedWhateverTheClient(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.serve()
	for name, tt := range map[string]struct{ manifest, want string }{
		"a disk of a DataSource": {"kind: VirtualMachine\nspec: {runStrategy: Always, dataVolumeTemplates: [{metadata: {name: a}, spec: {sourceRef: {kind: DataSource, name: a}, storage: {}}}], template: {spec: {domain: {devices: {}}}}}",
			"spec.dataVolumeTemplates[0].spec.sourceRef: Forbidden: not served yet: a DataSource may lead to another namespace"},
		"a claim that is plugged": {"kind: VirtualMachineInstance\nspec: {domain: {memory: {guest: 64Mi}, devices: {disks: [{name: a, disk: {bus: virtio}}]}}, volumes: [{name: a, persistentVolumeClaim: {claimName: a, hotpluggable: true}}]}",
			"spec.volumes[0].persistentVolumeClaim.hotpluggable: Forbidden: not served yet: nothing can be added to a running VMI yet"},
	} {
		for _, validate := range []string{"strict", "warn", "ignore"} {
			said, err := kubectl(t, "apiVersion: kubevirt.io/v1\nmetadata: {name: a}\n"+tt.manifest, "-n", w.name, "create", "--validate="+validate, "-f", "-")
			require.Error(t, err, name)
			require.Contains(t, strings.Join(strings.Fields(said), " "), tt.want, "%s, --validate=%s", name, validate)
		}
	}
}

func TestMissingMemoryHasAField(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.serve()
	said, err := kubectl(t, "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: vm, namespace: "+w.name+"}\nspec: {domain: {}}\n", "create", "-f", "-")
	require.Error(t, err)
	require.Contains(t, said, "spec.domain.memory.guest: Required value: say how much memory the guest sees: here, or in spec.domain.resources.requests.memory")
	require.NotContains(t, said, "<nil>")
}

// withDevices is the manifest of a VMI with these disks, interfaces, networks and
// volumes.
func withDevices(namespace string, lines ...string) string {
	return fmt.Sprintf(`
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: vm, namespace: %s}
spec:
  domain:
    memory: {guest: 64Mi}
    devices:
      disks: [%s]
      interfaces: [%s]
  networks: [%s]
  volumes: [%s]
`, namespace, lines[0], lines[1], lines[2], lines[3])
}

func TestAnApplierThatKnowsOneDiskLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	apply := func(by, manifest string) string {
		said, err := kubectl(t, manifest, "apply", "--server-side", "--field-manager", by, "-f", "-")
		require.NoError(t, err, said)
		return said
	}
	apply("first", withDevices(s.name,
		"{name: a, disk: {bus: virtio}}, {name: b, disk: {bus: sata}}",
		"{name: net, masquerade: {}}", "{name: net, pod: {}}",
		"{name: a, emptyDisk: {capacity: 1Gi}}, {name: b, emptyDisk: {capacity: 1Gi}}"))
	// A list that is replaced as a whole would be a changed spec, which is
	// refused.
	apply("second", withDevices(s.name, "{name: b, disk: {bus: sata}}", "", "", "{name: b, emptyDisk: {capacity: 1Gi}}"))

	said, err := kubectl(t, "", "-n", s.name, "get", "vmi", "vm", "-o", "jsonpath={.spec.domain.devices.disks[*].name} {.spec.volumes[*].name} {.spec.domain.devices.interfaces[*].name}")
	require.NoError(t, err)
	require.Equal(t, "a b a b net", said)
}

func TestARefusalNamesTheFieldAndTheWayOut(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for name, tt := range map[string]struct{ manifest, want string }{
		"a volume with two sources": {
			withDevices(s.name, "", "", "", "{name: a, emptyDisk: {capacity: 1Gi}, containerDisk: {image: x}}"),
			"spec.volumes[0]: Invalid value: a volume has exactly one source: containerDisk, ",
		},
		"an interface with two bindings": {
			withDevices(s.name, "", "{name: net, bridge: {}, masquerade: {}}", "{name: net, pod: {}}", ""),
			"spec.domain.devices.interfaces[0]: Invalid value: an interface has at most one binding: bridge, masquerade or sriov",
		},
		"two disks of one name": {
			withDevices(s.name, "{name: a}, {name: a}", "", "", "{name: a, emptyDisk: {capacity: 1Gi}}"),
			`spec.domain.devices.disks[1]: Duplicate value: {"name":"a"}`,
		},
		"a bus that does not exist": {
			withDevices(s.name, "{name: a, disk: {bus: ide}}", "", "", "{name: a, emptyDisk: {capacity: 1Gi}}"),
			`spec.domain.devices.disks[0].disk.bus: Unsupported value: "ide": supported values: "virtio", "sata", "scsi"`,
		},
		"user data in two places": {
			withDevices(s.name, "{name: a}", "", "", "{name: a, cloudInitConfigDrive: {userData: x, secretRef: {name: s}}}"),
			"spec.volumes[0].cloudInitConfigDrive: Invalid value: cloudInitConfigDrive has at most one source of user data",
		},
		"an architecture that does not run": {
			strings.Replace(withDevices(s.name, "", "", "", ""), "spec:\n", "spec:\n  architecture: s390x\n", 1),
			"VMIs of this architecture do not run yet: set architecture to amd64 or arm64, or leave it out",
		},
		"a field that is not built": {
			withDevices(s.name, "{name: a, lun: {reservation: true}}", "", "", "{name: a, persistentVolumeClaim: {claimName: a}}"),
			"not served yet: no helper for persistent reservations runs on the node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			said, err := kubectl(t, tt.manifest, "create", "--dry-run=server", "-f", "-")
			require.Error(t, err)
			require.Contains(t, said, tt.want)
		})
	}
}
