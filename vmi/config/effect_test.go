package config_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// whole are configurations that have between them every field that is seen here.
var whole = []string{`
configuration:
  additionalGuestMemoryOverheadRatio: "1.5"
  controllerConfiguration: {restClient: {rateLimiter: {tokenBucketRateLimiter: {qps: 10, burst: 20}}}}
  handlerConfiguration: {restClient: {rateLimiter: {tokenBucketRateLimiter: {qps: 11, burst: 21}}}}
  developerConfiguration:
    cpuAllocationRatio: 3
    diskVerification: {memoryLimit: 100Mi}
    featureGates: [HostDisk]
    logVerbosity: {virtController: 3, virtHandler: 4, nodeVerbosity: {node-a: 9}}
    memoryOvercommit: 150
    minimumReservePVCBytes: 1048576
    nodeSelectors: {a: b}
    pvcTolerateLessSpaceUpToPercent: 5
  evictionStrategy: LiveMigrate
  imagePullPolicy: Never
  instancetype: {referencePolicy: expand}
  memBalloonStatsPeriod: 5
  migrations:
    allowAutoConverge: true
    allowPostCopy: true
    allowWorkloadDisruption: true
    bandwidthPerMigration: 64Mi
    completionTimeoutPerGiB: 60
    nodeDrainTaintKey: example.com/leave
    parallelMigrationsPerCluster: 8
    parallelOutboundMigrationsPerNode: 3
    progressTimeout: 30
    maxDowntimeMs: 500
    network: kubevirt/moves
  obsoleteCPUModels: {Westmere: true}
  permittedHostDevices:
    mediatedDevices: [{externalResourceProvider: true, mdevNameSelector: GRID, resourceName: example.com/vgpu}]
    pciHostDevices: [{externalResourceProvider: true, pciVendorSelector: "10de:1eb8", resourceName: example.com/gpu}]
  vmStateStorageClass: fast
workloadUpdateStrategy: {workloadUpdateMethods: [LiveMigrate, Evict], batchEvictionSize: 5, batchEvictionInterval: 2m}
`, `
configuration:
  machineType: pc-q35-6.2
  emulatedMachines: ["pc-q35-*", q35]
`}

// idle are the fields that mean nothing for the components, and why.
var idle = map[string]string{
	"spec.configuration.permittedHostDevices.mediatedDevices[].mdevNameSelector": "the device plugin of the resource chooses the devices",
	"spec.configuration.permittedHostDevices.pciHostDevices[].pciVendorSelector": "the device plugin of the resource chooses the devices",
}

// leaf is a value of a configuration, with what takes it out and what makes it another number.
type leaf struct {
	path   string
	remove func()
	more   func()
}

// leavesOf are the values of the tree. What removes the whole is for the one above.
func leavesOf(path string, v any, remove, more func()) []leaf {
	var out []leaf
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			below := path + "." + name
			if strings.HasSuffix(path, "nodeSelectors") || strings.HasSuffix(path, "obsoleteCPUModels") || strings.HasSuffix(path, "nodeVerbosity") {
				below = path + "{}"
			}
			out = append(out, leavesOf(below, value, func() { delete(v, name) }, func() {
				if n, ok := value.(float64); ok {
					v[name] = n + 1
				}
			})...)
		}
	case []any:
		for _, value := range v {
			out = append(out, leavesOf(path+"[]", value, remove, more)...)
		}
	default:
		out = append(out, leaf{path, remove, more})
	}
	return out
}

// meaning is what the configuration means. It is false of one that is refused.
func meaning(t *testing.T, text string, change func(leaf)) (config.Config, bool) {
	t.Helper()
	var tree map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &tree))
	for _, l := range leavesOf("spec", tree, nil, nil) {
		change(l)
	}
	changed, err := yaml.Marshal(tree)
	require.NoError(t, err)
	k := kubevirt(vmi.KubeVirtConfiguration{})
	require.NoError(t, yaml.UnmarshalStrict(changed, &k.Spec))
	is, faults := config.Resolve(k)
	return is, len(faults) == 0
}

func TestEveryServedFieldOfTheConfigurationMeansSomething(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, text := range whole {
		var paths []string
		before, ok := meaning(t, text, func(l leaf) { paths = append(paths, l.path) })
		require.True(t, ok)
		for _, path := range paths {
			seen[path] = true
			after, ok := meaning(t, text, func(l leaf) {
				if l.path == path {
					l.remove()
				}
			})
			if !ok {
				after, ok = meaning(t, text, func(l leaf) {
					if l.path == path {
						l.more()
					}
				})
			}
			require.True(t, ok, path)
			if why := idle[path]; why != "" {
				require.Equal(t, before, after, "%s: means something: take it out of the list of those that do not, where it says: %s", path, why)
				continue
			}
			require.NotEqual(t, before, after, "%s: without it the configuration means the same", path)
		}
	}
	page, err := os.ReadFile("../../docs/fields.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` .*`"+t.Name()+"` \\|$").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, rows)
	for _, r := range rows {
		require.True(t, seen[r[1]], "%s: no configuration of this test has it: add it to one", r[1])
	}
}
