package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/version"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// linked is the version of the virt-controller that these tests run.
var linked = version.Info{Version: "v1.2.3+dirty", Commit: "c58b143aabbccddeeff00112233445566778899a", Date: "2026-01-02T03:04:05Z"}

// get reads a path of the API server.
func (v *verbs) get(t *testing.T, accept, path string) []byte {
	t.Helper()
	b, err := v.kube.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).Do(t.Context()).Raw()
	require.NoError(t, err, path)
	return b
}

func TestTheVerbsAreDiscoveredAndDescribed(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	eventually(t, func() error { return v.apiServices(t.Context()) })
	const plain, aggregated = "application/json", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	said := func() string {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(v.cluster.Kubeconfig), "cp", "log", "kube-apiserver.log"))
		require.NoError(t, err)
		return string(b)
	}
	current := func() error {
		var l struct {
			Items []struct {
				Metadata metav1.ObjectMeta
				Versions []struct {
					Version, Freshness string
					Resources          []struct{ Resource string }
				}
			}
		}
		require.NoError(t, json.Unmarshal(v.get(t, aggregated, "/apis"), &l))
		for _, g := range l.Items {
			if g.Metadata.Name != vmi.SubresourceGroup {
				continue
			}
			if len(g.Versions) != 2 || g.Versions[0].Version != "v1" || g.Versions[0].Freshness != "Current" || g.Versions[1].Freshness != "Current" || len(g.Versions[0].Resources) < 3 {
				return fmt.Errorf("the aggregated discovery has %+v", g)
			}
			return nil
		}
		return fmt.Errorf("the aggregated discovery has no group %s", vmi.SubresourceGroup)
	}
	described := func() error {
		if b := v.get(t, plain, "/openapi/v2"); !strings.Contains(string(b), "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachines/{name}/start") {
			return fmt.Errorf("/openapi/v2 has no verbs")
		}
		for _, of := range []string{"v1", "v1alpha3"} {
			if err := v.kube.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/" + vmi.SubresourceGroup + "/" + of).Do(t.Context()).Error(); err != nil {
				return err
			}
		}
		return nil
	}
	// virt-controller began after the APIServices were there, which the log has.
	eventually(t, current)
	eventually(t, described)
	before := len(said())

	for _, of := range []string{"v1", "v1alpha3"} {
		at := "/apis/" + vmi.SubresourceGroup + "/" + of
		var l metav1.APIResourceList
		require.NoError(t, json.Unmarshal(v.get(t, plain, at), &l))
		require.Equal(t, vmi.SubresourceGroup+"/"+of, l.GroupVersion)
		var names []string
		for _, r := range l.APIResources {
			require.True(t, r.Namespaced)
			names = append(names, r.Name)
		}
		require.Subset(t, names, []string{"virtualmachines/start", "virtualmachineinstances/console", "virtualmachineinstances/vnc/screenshot", "expand-vm-spec"})
		var said apiversion.Info
		require.NoError(t, json.Unmarshal(v.get(t, plain, at+"/version"), &said))
		require.Equal(t, apiversion.Info{
			Major: "1", Minor: "0", GitVersion: linked.Version, GitCommit: linked.Commit, BuildDate: linked.Date, GitTreeState: "dirty",
			GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		}, said)
		require.Contains(t, string(v.get(t, plain, at+"/healthz")), `"connectivity": "ok"`)
		require.Contains(t, string(v.get(t, plain, "/openapi/v3"+at)), "virtualmachineinstances/{name}/console")
	}
	for _, args := range [][]string{{"api-resources"}, {"api-versions"}, {"get", "--raw", "/apis/" + vmi.SubresourceGroup + "/v1"}, {"explain", "vmi.spec"}} {
		c := exec.CommandContext(t.Context(), v.cluster.Kubectl, append([]string{"--kubeconfig", v.cluster.Kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
		var complaints strings.Builder
		c.Stderr = &complaints
		_, err := c.Output()
		require.NoError(t, err, "%v", args)
		require.Empty(t, complaints.String(), "%v", args)
	}
	require.NoError(t, current())
	for _, line := range strings.Split(said()[before:], "\n") {
		if strings.HasPrefix(line, "E") || strings.HasPrefix(line, "W") {
			require.NotContains(t, line, vmi.SubresourceGroup)
		}
	}
}

// verbCall is a request that section 3 of the contract says the roles of.
type verbCall struct {
	method, path, body string
	// roles are those that may.
	roles string
}

var verbCalls = []verbCall{
	{"GET", "virtualmachineinstances/a/guestosinfo", "", "view edit admin"},
	{"GET", "virtualmachineinstances/a/userlist", "", "view edit admin"},
	{"GET", "virtualmachineinstances/a/filesystemlist", "", "view edit admin"},
	{"GET", "virtualmachines/a/expand-spec", "", "view edit admin"},
	{"PUT", "expand-vm-spec", `{"kind":"VirtualMachine","spec":{"template":{"spec":{"domain":{"devices":{}}}}}}`, "view edit admin"},
	{"GET", "virtualmachineinstances/a/console", "", "edit admin"},
	{"GET", "virtualmachineinstances/a/vnc", "", "edit admin"},
	{"GET", "virtualmachineinstances/a/portforward/80", "", "edit admin"},
	{"GET", "virtualmachineinstances/a/portforward/80/udp", "", "edit admin"},
	{"GET", "virtualmachines/a/portforward/80/tcp", "", "edit admin"},
	{"GET", "virtualmachineinstances/a/vnc/screenshot", "", "admin"},
	{"PUT", "virtualmachineinstances/a/pause", `{"dryRun":["All"]}`, "edit admin"},
	{"PUT", "virtualmachineinstances/a/unpause", `{"dryRun":["All"]}`, "edit admin"},
	{"PUT", "virtualmachineinstances/a/freeze", "unfreezeTimeout: 10s", "edit admin"},
	{"PUT", "virtualmachineinstances/a/unfreeze", "", "edit admin"},
	{"PUT", "virtualmachineinstances/a/softreboot", "", "edit admin"},
	{"PUT", "virtualmachineinstances/a/reset", "", "edit admin"},
	{"PUT", "virtualmachineinstances/a/evacuate/cancel", "", "edit admin"},
	{"PUT", "virtualmachines/a/evacuate/cancel", "", "edit admin"},
	{"PUT", "virtualmachines/a/start", `{"dryRun":["All"]}`, "edit admin"},
	{"PUT", "virtualmachines/a/stop", `{"dryRun":["All"]}`, "edit admin"},
	{"PUT", "virtualmachines/a/restart", `{"dryRun":["All"]}`, "edit admin"},
	{"PUT", "virtualmachines/a/migrate", `{"dryRun":["All"]}`, "migrate"},
	// Not granted to users, as nothing answers them.
	{"GET", "virtualmachineinstances/a/vsock", "", ""},
	{"GET", "virtualmachineinstances/a/usbredir", "", ""},
	{"GET", "virtualmachineinstances/a/objectgraph", "", ""},
	{"PUT", "virtualmachineinstances/a/backup", "", ""},
	{"PUT", "virtualmachineinstances/a/addvolume", "", ""},
	{"PUT", "virtualmachineinstances/a/sev/setupsession", "", ""},
	{"PUT", "virtualmachines/a/memorydump", "", ""},
}

func TestTheRoleEditMayCallEveryVerbAndViewNone(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	ns, elsewhere := v.namespace(t), v.namespace(t)
	m := vmitest.NewVM(vmi.RunHalted, vmitest.WithContainerDisk("root", "example/fedora:40"))
	m.ObjectMeta = metav1.ObjectMeta{Name: "a"}
	_, err := v.vmis.VirtualMachines(ns).Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = v.kube.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "get"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{vmi.GroupName}, Resources: []string{"virtualmachineinstances"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	users := map[string]*rest.Config{
		"view": v.user(t, ns, "view"), "edit": v.user(t, ns, "edit"), "admin": v.user(t, ns, "admin"),
		"migrate":   v.account(t, ns, "migrate", clusterRole("kubevirt.io:migrate")),
		"get":       v.account(t, ns, "get", &rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "get"}),
		"none":      v.account(t, ns, "none", nil),
		"elsewhere": v.user(t, elsewhere, "admin"),
	}
	eventually(t, func() error {
		code, s := v.ask(t, users["migrate"], "PUT", verbPath(ns, "virtualmachines/a/migrate"), `{"dryRun":["All"]}`)
		if code == http.StatusForbidden {
			return fmt.Errorf("the role is not in force: %s", s.Message)
		}
		return nil
	})
	aggregator := v.at(8443, v.pair(t, "front-proxy-client"))
	port := "https://10.200.0.1:8443"
	for name, cfg := range users {
		of, account := ns, name
		if name == "elsewhere" {
			of, account = elsewhere, "admin"
		}
		as := http.Header{"X-Remote-User": {"system:serviceaccount:" + of + ":" + account},
			"X-Remote-Group": {"system:serviceaccounts", "system:serviceaccounts:" + of, "system:authenticated"}}
		for _, c := range verbCalls {
			allowed := strings.Contains(" "+c.roles+" ", " "+name+" ")
			for hop, send := range map[string]func() (int, metav1.Status){
				"through the API server": func() (int, metav1.Status) { return v.ask(t, cfg, c.method, verbPath(ns, c.path), c.body) },
				"virt-controller by itself": func() (int, metav1.Status) {
					return sendTo(t, aggregator, port+verbPath(ns, c.path), c.method, c.body, as)
				},
			} {
				code, s := send()
				if !allowed {
					require.Equal(t, http.StatusForbidden, code, "%s, %s: %s %s: %s", name, hop, c.method, c.path, s.Message)
					require.Equal(t, metav1.StatusReasonForbidden, s.Reason)
					continue
				}
				// What the VMI, which is played, does not allow is a fault of the request.
				require.NotContains(t, []int{401, 403, 404, 405, 429, 500, 502, 503}, code, "%s, %s: %s %s: %s", name, hop, c.method, c.path, s.Message)
			}
		}
		code, s := v.ask(t, cfg, "GET", "/apis/"+vmi.SubresourceGroup+"/v1/version", "")
		require.Equal(t, http.StatusOK, code, s.Message)
		code, s = v.ask(t, cfg, "GET", "/apis/"+vmi.SubresourceGroup+"/v1/guestfs", "")
		require.Equal(t, http.StatusNotFound, code, "allowed, and not served: %s", s.Message)
		c, err := v.console(t, cfg, ns, "a")
		if name == "edit" || name == "admin" {
			require.NoError(t, err)
			echoes(t, c)
			require.NoError(t, c.Close())
		} else {
			require.ErrorContains(t, err, "forbidden", name)
		}
	}
	for _, c := range verbCalls {
		code, _ := v.ask(t, rest.AnonymousClientConfig(v.config), c.method, verbPath(ns, c.path), c.body)
		require.Equal(t, http.StatusForbidden, code, "without a token: %s", c.path)
	}
}
