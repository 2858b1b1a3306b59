package manifest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
	"github.com/podvisor/podvisor/vmi/validate"
)

// report is what is found in the files: faults, what is not served, then notes.
func report(t *testing.T, c kinds.Cluster, files ...string) []byte {
	t.Helper()
	var faults, unserved, notes bytes.Buffer
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		all, err := manifest.Check(data, c)
		require.NoError(t, err)
		for _, o := range all {
			for _, f := range o.Faults {
				fmt.Fprintf(&faults, "%s: %s: %s\n", filepath.Base(file), o, f)
			}
			for _, f := range o.Unserved {
				fmt.Fprintf(&unserved, "%s: %s: %s\n", filepath.Base(file), o, f)
			}
			for _, n := range o.Notes {
				fmt.Fprintf(&notes, "%s: %s: %s\n", filepath.Base(file), o, n)
			}
		}
	}
	return fmt.Appendf(nil, "%s# not served\n%s# notes\n%s", faults.String(), unserved.String(), notes.String())
}

func TestFaultsAndNotes(t *testing.T) {
	t.Parallel()
	cluster := func() kinds.Cluster {
		data, err := os.ReadFile("testdata/cluster.yaml")
		require.NoError(t, err)
		o, err := manifest.Configuration(data)
		require.NoError(t, err)
		require.Empty(t, o.Faults)
		c := kinds.Configured(&o.Complete.(*vmi.KubeVirt).Spec.Configuration)
		c.Limits.Features, _ = validate.FeatureGates("HostDisk")
		return c
	}
	for name, tt := range map[string]struct {
		files   []string
		cluster kinds.Cluster
	}{
		"faults":   {files: []string{"testdata/faults.yaml"}},
		"unknown":  {files: []string{"testdata/unknown.yaml"}},
		"types":    {files: []string{"testdata/types.yaml"}},
		"lists":    {files: []string{"testdata/lists.yaml", "testdata/two.json"}},
		"others":   {files: []string{"testdata/others.yaml", "../../examples/service-hello.yaml"}},
		"unserved": {files: []string{"testdata/unserved.yaml"}},
		"refused":  {files: []string{"testdata/refused.yaml"}},
		"both":     {files: []string{"testdata/both.yaml"}},
		"untyped":  {files: []string{"testdata/untyped.yaml"}},
		"former":   {files: []string{"testdata/former.yaml"}},
		"cluster":  {files: []string{"testdata/cluster.yaml", "testdata/vm.yaml"}, cluster: cluster()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Equal(t, filepath.Join("testdata", name+".golden"), report(t, tt.cluster, tt.files...))
		})
	}
}

func TestAnObjectWithoutFaultsIsCompleted(t *testing.T) {
	t.Parallel()
	var c kinds.Cluster
	c.Defaults.Now = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var out bytes.Buffer
	for _, file := range []string{"../../examples/vmi-hello.yaml", "testdata/vm.yaml"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		all, err := manifest.Check(data, c)
		require.NoError(t, err)
		for _, o := range all {
			text, err := o.YAML()
			require.NoError(t, err)
			fmt.Fprintf(&out, "---\n%s", text)
		}
	}
	golden.Equal(t, "testdata/defaulted.golden", out.Bytes())
}

func TestAFieldOfTheConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/configuration.yaml")
	require.NoError(t, err)
	o, err := manifest.Configuration(data)
	require.NoError(t, err)
	require.Len(t, o.Faults, 1)
	require.Equal(t, "spec.configuration.network.defaultNetworkInterface: FieldValueInvalid: Invalid value: \"slirp\": must be bridge or masquerade", o.Faults[0].String())
}

func TestAConfigurationIsOneKubeVirt(t *testing.T) {
	t.Parallel()
	one := "apiVersion: kubevirt.io/v1\nkind: KubeVirt\nmetadata: {name: a}\nspec: {}\n"
	for data, want := range map[string]string{
		"":                  "read the configuration: must have one object of the kind KubeVirt, has 0",
		one + "---\n" + one: "read the configuration: must have one object of the kind KubeVirt, has 2",
		"apiVersion: a/v1\nkind: KubeVirt\nmetadata: {name: a}\n": "read the configuration: must have one object of the kind KubeVirt, has 0",
	} {
		_, err := manifest.Configuration([]byte(data))
		require.EqualError(t, err, want)
	}
	_, err := manifest.Configuration([]byte(one))
	require.NoError(t, err)
}

func TestTextThatIsNoObjectIsAFault(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a: b: c", "just a word", "{}", "metadata: {name: a}"} {
		all, err := manifest.Check([]byte(text), kinds.Cluster{})
		require.NoError(t, err)
		require.Len(t, all, 1, text)
		require.Len(t, all[0].Faults, 1, text)
		require.Nil(t, all[0].Complete, text)
		require.Contains(t, all[0].String(), "unknown/")
	}
	all, err := manifest.Check([]byte("# only a comment\n---\n"), kinds.Cluster{})
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestEveryKindOfTheTableIsChecked(t *testing.T) {
	t.Parallel()
	for _, k := range kinds.All() {
		text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: a}\nspec: {nothing: 1}\n", k.GroupVersion(), k.Kind)
		for _, text := range []string{text, fmt.Sprintf("apiVersion: %s\nkind: %sList\nitems: [{metadata: {name: a}, spec: {nothing: 1}}]\n", k.GroupVersion(), k.Kind)} {
			all, err := manifest.Check([]byte(text), kinds.Cluster{})
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, k.Kind+"/a", all[0].String())
			require.Contains(t, fmt.Sprint(all[0].Faults), "spec.nothing: FieldValueInvalid: there is no field")
		}
	}
}
