package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/podvisor/podvisor/e2e/chart/charttest"
	"github.com/podvisor/podvisor/e2e/install"
)

const (
	manifests = "../../manifests"
	version   = "v0.3.0"
	// newest is a version of Kubernetes that has all kinds of the manifests.
	newest = "--kube-version=1.37.0"
)

func reference(component string) string {
	return "registry.example:5000/podvisor/" + component + "@sha256:" + strings.Repeat("0", 64)
}

// archive is the archive of the chart.
func archive(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), File(version))
	require.NoError(t, Write(file, Config{Version: version, Manifests: manifests, Reference: reference}))
	return file
}

// kustomized are the objects of an overlay of the manifests.
func kustomized(t *testing.T, c install.Config) map[string]unstructured.Unstructured {
	t.Helper()
	c.Manifests, c.Reference = manifests, reference
	dir, err := install.Overlay(c)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, err)
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	require.NoError(t, err)
	text, err := resources.AsYaml()
	require.NoError(t, err)
	return charttest.Objects(t, text)
}

// TestTheChartRendersTheManifests has all that renders the chart, which is made once.
func TestTheChartRendersTheManifests(t *testing.T) {
	t.Parallel()
	helm, file := charttest.New(t, ""), archive(t)
	render := func(t *testing.T, args ...string) map[string]unstructured.Unstructured {
		t.Helper()
		return charttest.Objects(t, []byte(helm.Run(append([]string{"template", "podvisor", file, "--no-hooks"}, args...)...)))
	}
	equal := func(t *testing.T, want, got map[string]unstructured.Unstructured) {
		t.Helper()
		for key, w := range want {
			require.Contains(t, got, key)
			require.Equal(t, w.Object, got[key].Object, key)
		}
		require.Len(t, got, len(want))
	}
	plain := kustomized(t, install.Config{})
	for name, args := range map[string]string{
		"with the defaults":               newest,
		"for the first version with all":  "--kube-version=1.36.0-alpha.1",
		"for a version with a vendor's +": "--kube-version=v1.36.4+k3s1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, plain, render(t, args))
		})
	}
	for name, tt := range map[string]struct {
		args []string
		want install.Config
	}{
		"for an older Kubernetes": {args: []string{"--kube-version=1.35.9"}, want: install.Config{Components: []string{"kubernetes-1.32"}}},
		"with emulation":          {args: []string{newest, "--set=emulation=true"}, want: install.Config{Emulation: true}},
		"with monitoring":         {args: []string{newest, "--set=monitoring.enabled=true"}, want: install.Config{Resources: []string{"monitoring/scrape"}}},
		"with the Prometheus Operator": {
			args: []string{newest, "--set=monitoring.enabled=true,monitoring.serviceMonitor.enabled=true,monitoring.rules.enabled=true"},
			want: install.Config{Resources: []string{"monitoring/operator"}},
		},
		"with the dashboard": {args: []string{newest, "--set=monitoring.dashboard.enabled=true"}, want: install.Config{Resources: []string{"monitoring/dashboard"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, got := kustomized(t, tt.want), render(t, tt.args...)
			if tt.want.Emulation { // the component moves the variables that it sets
				sortVariables(want)
				sortVariables(got)
			}
			equal(t, want, got)
		})
	}
	t.Run("in another namespace", func(t *testing.T) {
		t.Parallel()
		want := map[string]unstructured.Unstructured{}
		for key, o := range kustomized(t, install.Config{Into: "there"}) {
			kind, rest, _ := strings.Cut(key, " ")
			_, object, _ := strings.Cut(rest, "/")
			if _, is := plain[kind+" /"+object]; is { // kustomize writes the namespace into objects that are in none
				o.SetNamespace("")
				key = kind + " /" + object
			}
			want[key] = o
		}
		equal(t, want, render(t, newest, "--set=namespace=there"))
	})
	t.Run("with monitoring in another namespace", func(t *testing.T) {
		t.Parallel()
		got := render(t, newest, "--set=namespace=podvisor,monitoring.enabled=true,monitoring.serviceMonitor.enabled=true,monitoring.rules.enabled=true")
		for key, w := range operatorElsewhere(t) {
			require.Contains(t, got, key)
			require.Equal(t, w.Object, got[key].Object, key)
		}
	})
	t.Run("with a namespace that is a number", func(t *testing.T) {
		t.Parallel()
		got := render(t, newest, "--set-string=namespace=12", "--set=monitoring.enabled=true,monitoring.serviceMonitor.enabled=true,monitoring.rules.enabled=true")
		require.Equal(t, []any{"12"}, look(t, got["ServiceMonitor 12/prometheus-kubevirt-rules"].Object, strings.Split("spec.namespaceSelector.matchNames", ".")))
	})
	t.Run("an uninstall begins with what the webhooks review", func(t *testing.T) {
		t.Parallel()
		out := helm.Run("template", "podvisor", file, newest, "--set=namespace=there", "--show-only=templates/uninstall.yaml")
		require.Equal(t, 2, strings.Count(out, "  name: virt-controller-uninstall\n  namespace: \"there\"\n  labels:\n    kubevirt.io: virt-controller\n"), out)
	})
	t.Run("lint finds nothing", func(t *testing.T) {
		t.Parallel()
		require.Contains(t, helm.Run("lint", "--strict", file), "0 chart(s) failed")
	})
	t.Run("the definitions are kept", func(t *testing.T) {
		t.Parallel()
		out := helm.Run("template", "podvisor", file, "--show-only=templates/definitions.yaml")
		require.Equal(t, strings.Count(out, "\nkind: CustomResourceDefinition\n"), strings.Count(out, "    helm.sh/resource-policy: keep\n"))
		require.NotContains(t, helm.Run("template", "podvisor", file, "--show-only=templates/components.yaml"), "resource-policy")
	})
	for _, tt := range values {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			got := render(t, append(tt.args, newest)...)
			for at, want := range tt.want {
				key, path, _ := strings.Cut(at, ": ")
				require.Contains(t, got, key)
				require.Equal(t, want, look(t, got[key].Object, strings.Split(path, ".")), at)
			}
		})
	}
	for args, want := range wrong {
		t.Run("refused: "+args, func(t *testing.T) {
			t.Parallel()
			out, err := helm.Try("template", "podvisor", file, args)
			require.Error(t, err)
			require.Contains(t, out, want)
		})
	}
}

// operatorElsewhere are the objects of manifests/monitoring/operator in the namespace podvisor, as the
// command of docs/monitoring.md makes them.
func operatorElsewhere(t *testing.T) map[string]unstructured.Unstructured {
	t.Helper()
	page, err := os.ReadFile("../../docs/monitoring.md")
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^ +sed '(.*)' \|$`).FindSubmatch(page)
	require.NotNil(t, command, "docs/monitoring.md")
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(manifests, "monitoring", "operator"))
	require.NoError(t, err)
	text, err := resources.AsYaml()
	require.NoError(t, err)
	sed := exec.CommandContext(t.Context(), "sed", string(command[1]))
	sed.Stdin = bytes.NewReader(text)
	out, err := sed.Output()
	require.NoError(t, err)
	all := charttest.Objects(t, out)
	require.Len(t, all, 7)
	return all
}

// sortVariables sorts the environment variables of the components by their names.
func sortVariables(all map[string]unstructured.Unstructured) {
	for _, o := range all {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			slices.SortFunc(c.(map[string]any)["env"].([]any), func(a, b any) int {
				return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
			})
		}
		if containers != nil {
			_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
		}
	}
}

// look is the field of an object, with elements of lists by the field name as [x].
func look(t *testing.T, object any, path []string) any {
	t.Helper()
	for _, step := range path {
		name, is := strings.CutPrefix(step, "[")
		if !is {
			object = object.(map[string]any)[step]
			continue
		}
		list := object.([]any)
		n := slices.IndexFunc(list, func(e any) bool { return e.(map[string]any)["name"] == strings.TrimSuffix(name, "]") })
		require.GreaterOrEqual(t, n, 0, "%v has no %s", list, step)
		object = list[n]
	}
	return object
}

const (
	controllerIn   = "Deployment kubevirt/virt-controller: spec.template.spec."
	certificatesIn = "Deployment kubevirt/virt-certificates: spec.template.spec."
	handlerIn      = "DaemonSet kubevirt/virt-handler: spec.template.spec."
	policyIn       = "ValidatingAdmissionPolicy /virt-controller.kubevirt.io: spec.variables."
)

// values are arguments of Helm, and what is then in the fields of the objects.
var values = []struct {
	args []string
	want map[string]any
}{
	{[]string{"--set=registry=mirror.example:5000/p"}, map[string]any{
		controllerIn + "containers.[virt-controller].image":                           moved("virt-controller"),
		certificatesIn + "containers.[virt-certificates].image":                       moved("virt-controller"),
		handlerIn + "containers.[virt-handler].image":                                 moved("virt-handler"),
		handlerIn + "initContainers.[processors].image":                               moved("virt-launcher"),
		controllerIn + "containers.[virt-controller].env.[LAUNCHER_IMAGE].value":      moved("virt-launcher"),
		controllerIn + "containers.[virt-controller].env.[LAUNCHER_FULL_IMAGE].value": moved("virt-launcher-full"),
		policyIn + "[launcher].expression":                                            "'" + moved("virt-launcher") + "'",
	}},
	{[]string{"--set=images.virtHandler=own.example/handler:v2"}, map[string]any{
		handlerIn + "containers.[virt-handler].image":       "own.example/handler:v2",
		controllerIn + "containers.[virt-controller].image": reference("virt-controller"),
	}},
	{[]string{"--set-string=namespace=12"}, map[string]any{"Namespace /12: metadata.name": "12"}},
	{[]string{"--set=imagePullSecrets[0].name=registry"}, map[string]any{
		controllerIn + "imagePullSecrets":   []any{map[string]any{"name": "registry"}},
		certificatesIn + "imagePullSecrets": []any{map[string]any{"name": "registry"}},
		handlerIn + "imagePullSecrets":      []any{map[string]any{"name": "registry"}},
	}},
	{[]string{"--set=virtController.replicas=3", "--set=virtController.resources.limits.memory=2Gi", "--set=virtController.goMemoryLimit=1800MiB"}, map[string]any{
		"Deployment kubevirt/virt-controller: spec.replicas":                      float64(3),
		controllerIn + "containers.[virt-controller].resources.limits.memory":     "2Gi",
		controllerIn + "containers.[virt-controller].resources.requests.memory":   "64Mi",
		controllerIn + "containers.[virt-controller].env.[GOMEMLIMIT].value":      "1800MiB",
		certificatesIn + "containers.[virt-certificates].resources.limits.memory": "128Mi",
	}},
	{[]string{"--set=virtHandler.nodeSelector.pool=guests", "--set-json=virtHandler.tolerations=[]"}, map[string]any{
		handlerIn + "nodeSelector.pool":                  "guests",
		handlerIn + `nodeSelector`:                       map[string]any{"kubernetes.io/os": "linux", "pool": "guests"},
		handlerIn + "tolerations":                        []any{},
		controllerIn + "tolerations":                     kept(),
		"DaemonSet kubevirt/virt-handler: spec.replicas": nil,
	}},
	{[]string{"--set=monitoring.enabled=true,monitoring.serviceMonitor.enabled=true,monitoring.rules.enabled=true,monitoring.dashboard.enabled=true",
		"--set=monitoring.serviceMonitor.labels.release=mine,monitoring.rules.labels.release=mine,monitoring.dashboard.labels.grafana_dashboard=null",
		"--set=monitoring.dashboard.labels.dashboards=mine"}, map[string]any{
		"ServiceMonitor kubevirt/prometheus-kubevirt-rules: metadata.labels": map[string]any{
			"kubevirt.io": "metrics", "prometheus.kubevirt.io": "true", "k8s-app": "kubevirt", "openshift.io/cluster-monitoring": "", "release": "mine"},
		"PrometheusRule kubevirt/prometheus-kubevirt-rules: metadata.labels": map[string]any{
			"kubevirt.io": "metrics", "prometheus.kubevirt.io": "true", "k8s-app": "kubevirt", "release": "mine"},
		"ConfigMap kubevirt/podvisor-dashboard: metadata.labels": map[string]any{"kubevirt.io": "metrics", "dashboards": "mine"},
	}},
	{[]string{"--set=containerDisks=init-copy", "--set=admission.podFields=spec.dnsConfig"}, map[string]any{
		controllerIn + "containers.[virt-controller].env.[CONTAINER_DISKS].value": "init-copy",
		controllerIn + "containers.[virt-controller].env.[POD_FIELDS].value":      "spec.dnsConfig",
	}},
	{[]string{"--set-json=admission.sidecars=[\"docker.io/istio/proxyv2\",\"b\"]", "--set-json=admission.audiences=[\"istio-ca\"]"}, map[string]any{
		policyIn + "[sidecars].expression":         `["docker.io/istio/proxyv2","b"]`,
		policyIn + "[audiences].expression":        `["istio-ca"]`,
		policyIn + "[configMapsBeside].expression": `[]`,
	}},
}

func moved(component string) string {
	return strings.Replace(reference(component), "registry.example:5000/podvisor", "mirror.example:5000/p", 1)
}

// kept are the tolerations of virt-controller in the manifests.
func kept() any {
	all := []any{}
	for _, key := range []string{"CriticalAddonsOnly", "node-role.kubernetes.io/control-plane"} {
		all = append(all, map[string]any{"key": key, "operator": "Exists"})
	}
	all[1].(map[string]any)["effect"] = "NoSchedule"
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		all = append(all, map[string]any{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": float64(30)})
	}
	return all
}

// wrong are arguments with a wrong value, and what the refusal says.
var wrong = map[string]string{
	"--set=replicas=3":                                 "additional properties 'replicas' not allowed",
	"--set=virtController.replica=3":                   "at '/virtController': additional properties 'replica' not allowed",
	"--set=virtController.replicas=0":                  "at '/virtController/replicas': minimum: got 0, want 1",
	"--set=virtController.replicas=two":                "at '/virtController/replicas': got string, want integer",
	"--set=emulation=yes":                              "at '/emulation': got string, want boolean",
	"--set=namespace=Kube_virt":                        "at '/namespace': 'Kube_virt' does not match pattern",
	"--set=images.virtLauncher=a'b":                    "at '/images/virtLauncher': 'a\\'b' does not match pattern",
	"--set=images.launcher=a":                          "at '/images': additional properties 'launcher' not allowed",
	"--set=registry=https://registry.example":          "at '/registry': 'https://registry.example' does not match pattern",
	"--set=imagePullSecrets[0]=registry":               "at '/imagePullSecrets/0': got string, want object",
	"--set=containerDisks=copy":                        "at '/containerDisks': value must be one of",
	"--set=virtHandler.resources.limits.memory=1GB":    "at '/virtHandler/resources/limits/memory': '1GB' does not match pattern",
	"--set=virtHandler.resources.limit.memory=1Gi":     "at '/virtHandler/resources': additional properties 'limit' not allowed",
	"--set=virtHandler.goMemoryLimit=1Gi":              "at '/virtHandler/goMemoryLimit': '1Gi' does not match pattern",
	"--set=virtHandler.tolerations[0].effect=Never":    "at '/virtHandler/tolerations/0/effect': value must be one of",
	"--set=virtHandler.nodeSelector.pool=true":         "at '/virtHandler/nodeSelector/pool': got boolean, want string",
	"--set=admission.sidecars=docker.io/istio/proxyv2": "at '/admission/sidecars': got string, want array",
	"--set-json=admission.audiences=[\"a']+['b\"]":     "at '/admission/audiences/0': 'a\\']+[\\'b' does not match pattern",
	"--set=monitoring.serviceMonitor.enabled=true":     "at '/monitoring/enabled': value must be true",
	"--set=monitoring.rules.labels.release=a b":        "at '/monitoring/rules/labels/release': 'a b' does not match pattern",
}

func TestTheChartIsTheSameBytesWhereverItIsMade(t *testing.T) {
	t.Parallel()
	first, err := os.ReadFile(archive(t))
	require.NoError(t, err)
	elsewhere := filepath.Join(t.TempDir(), "manifests")
	require.NoError(t, os.CopyFS(elsewhere, os.DirFS(manifests)))
	file := filepath.Join(t.TempDir(), "chart")
	require.NoError(t, Write(file, Config{Version: version, Manifests: elsewhere, Reference: reference}))
	second, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, string(first) == string(second))
}

func TestAManifestThatIsNotAsTheRulesExpectItIsReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, old, new, want string }{
		"a field is not there":       {"virt-controller.yaml", "  replicas: 2\n", "", "Deployment virt-controller: field spec.replicas: it is not there"},
		"an object is not there":     {"virt-handler.yaml", "metadata:\n  name: virt-handler\n", "metadata:\n  name: other\n", "the manifests have no DaemonSet virt-handler"},
		"a list is an expression":    {"policies/virt-controller.yaml", "  - name: audiences\n    expression: \"[]\"", "  - name: audiences\n    expression: \"['a'\"", "is no value"},
		"an optional field is there": {"virt-handler.yaml", "      serviceAccountName: virt-handler\n", "      serviceAccountName: virt-handler\n      imagePullSecrets: [{name: x}]\n", "DaemonSet virt-handler: field spec.template.spec.imagePullSecrets: it is there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "manifests")
			require.NoError(t, os.CopyFS(dir, os.DirFS(manifests)))
			file := filepath.Join(dir, tt.file)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(text), tt.old)
			require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), tt.old, tt.new)), 0o600))
			_, err = Config{Version: version, Manifests: dir, Reference: reference}.files()
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestThePageHasEachValueWithWhatTheSchemaSaysOfIt(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/helm.md")
	require.NoError(t, err)
	all, err := properties()
	require.NoError(t, err)
	var want []string
	var add func([]property)
	add = func(all []property) {
		for _, p := range all {
			require.NotEmpty(t, p.description, p.path)
			if p.properties == nil {
				want = append(want, fmt.Sprintf("| `%s` | %s |", p.path, p.description))
			}
			add(p.properties)
		}
	}
	add(all)
	var got []string
	_, section, _ := strings.Cut(string(page), "\n## Values\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"), "the table of docs/helm.md")
}
