package interop

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// refusal is what kubectl prints before it exits with an error.
type refusal string

// kubectl runs the commands of kubectl against a server.
type kubectl struct {
	t     *testing.T
	flags []string
}

// file is a file with the manifest, for the flag -f: kubectl reads "-" from the standard
// input of the process.
func (k kubectl) file(manifest string) string {
	k.t.Helper()
	name := filepath.Join(k.t.TempDir(), "manifest.yaml")
	require.NoError(k.t, os.WriteFile(name, []byte(manifest), 0o600))
	return name
}

func newKubectl(t *testing.T, s *fake.Server) kubectl {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(dir, "config"))
	t.Setenv("KUBECTL_KUBERC", "false")
	cmdutil.BehaviorOnFatal(func(message string, _ int) { panic(refusal(message)) })
	t.Cleanup(cmdutil.DefaultBehaviorOnFatal)
	return kubectl{t, []string{"--server", server.URL, "--cache-dir", filepath.Join(dir, "cache"), "--namespace", "default"}}
}

// run runs a command and returns what it prints, and the error that it ends with.
func (k kubectl) run(args ...string) (out string, refused string) {
	k.t.Helper()
	var stdout, stderr bytes.Buffer
	defer func() {
		if r := recover(); r != nil {
			why, ok := r.(refusal)
			if !ok {
				panic(r)
			}
			out, refused = stdout.String(), string(why)
		}
	}()
	c := cmd.NewKubectlCommand(cmd.KubectlOptions{
		Arguments: append([]string{"kubectl"}, args...),
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr},
	})
	c.SetArgs(append(args, k.flags...))
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	require.NoError(k.t, c.Execute())
	return stdout.String(), ""
}

// does runs a command that must succeed.
func (k kubectl) does(args ...string) string {
	k.t.Helper()
	out, refused := k.run(args...)
	require.Empty(k.t, refused, "kubectl %s", strings.Join(args, " "))
	return out
}

const manifest = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web
spec:
  runStrategy: Halted
  template:
    spec:
      domain:
        devices: {}
`

func TestKubectlWorksUnmodified(t *testing.T) {
	k := newKubectl(t, fake.New(vmitest.New(), vmitest.NewReplicaSet(2, vmitest.WithName("set"))))
	require.Contains(t, k.does("get", "--raw", "/version"), `"gitVersion":"v1.37.0"`)
	require.Regexp(t, `virtualmachines +vm,vms +kubevirt.io/v1 +true +VirtualMachine\n`, k.does("api-resources"))
	require.Regexp(t, `^NAME +AGE\ntestvmi +\S+\n$`, k.does("get", "vmis"))

	require.Equal(t, "virtualmachine.kubevirt.io/web created\n", k.does("apply", "-f", k.file(manifest)))
	require.Equal(t, "virtualmachine.kubevirt.io/web unchanged\n", k.does("apply", "-f", k.file(manifest)))
	require.Equal(t, "virtualmachine.kubevirt.io/web configured\n", k.does("apply", "-f", k.file(strings.Replace(manifest, "Halted", "Always", 1))))
	require.Equal(t, "Always", k.does("get", "vm", "web", "-o", "jsonpath={.spec.runStrategy}"))
	_, refused := k.run("apply", "--server-side", "--field-manager", "other", "-f", k.file(strings.Replace(manifest, "Halted", "Manual", 1)))
	require.Contains(t, refused, "conflict")
	require.Equal(t, "virtualmachine.kubevirt.io/web serverside-applied\n",
		k.does("apply", "--server-side", "--force-conflicts", "--field-manager", "other", "-f", k.file(strings.Replace(manifest, "Halted", "Manual", 1))))
	_, refused = k.run("apply", "-f", k.file(strings.Replace(manifest, "runStrategy", "runStrategies", 1)))
	require.Contains(t, refused, `unknown field "spec.runStrategies"`)

	require.Equal(t, "virtualmachine.kubevirt.io/web labeled\n", k.does("label", "vm", "web", "a=b"))
	require.Equal(t, "virtualmachine.kubevirt.io/web patched\n", k.does("patch", "vm", "web", "--type=merge", "-p", `{"spec":{"runStrategy":"Halted"}}`))
	require.Equal(t, "virtualmachineinstancereplicaset.kubevirt.io/set scaled\n", k.does("scale", "vmirs", "set", "--replicas=5"))
	require.Equal(t, "5", k.does("get", "vmirs", "set", "-o", "jsonpath={.spec.replicas}"))
	require.Contains(t, k.does("describe", "vm", "web"), "Run Strategy:  Halted")
	require.Equal(t, `virtualmachine.kubevirt.io "web" deleted from default namespace`+"\n", k.does("delete", "vm", "web"))
	_, refused = k.run("get", "vm", "web")
	require.Contains(t, refused, `virtualmachines.kubevirt.io "web" not found`)
	_, refused = k.run("get", "pods")
	require.Contains(t, refused, `the server doesn't have a resource type "pods"`)
}

func TestKubectlCallsVerbs(t *testing.T) {
	k := newKubectl(t, fake.New(vmitest.NewVM(vmi.RunHalted)))
	k.does("replace", "--raw", "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/testvmi/start", "-f", k.file("{}"))
	require.Equal(t, "Always", k.does("get", "vm", "testvmi", "-o", "jsonpath={.spec.runStrategy}"))
}
