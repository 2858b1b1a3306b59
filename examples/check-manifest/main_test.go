package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/golden"
)

func check(in string, args ...string) (status int, out, notes string) {
	var o, n bytes.Buffer
	status = run(args, strings.NewReader(in), &o, &n, metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	return status, o.String(), n.String()
}

// TestManifests checks each file of testdata and compares all that is printed.
func TestManifests(t *testing.T) {
	for name, tt := range map[string]struct {
		args   []string
		status int
	}{
		"faults":    {[]string{"testdata/faults.yaml"}, 1},
		"unknown":   {[]string{"testdata/unknown.yaml"}, 1},
		"types":     {[]string{"testdata/types.yaml"}, 1},
		"lists":     {[]string{"testdata/lists.yaml", "testdata/two.json"}, 1},
		"others":    {[]string{"testdata/others.yaml", "../service-hello.yaml"}, 1},
		"defaulted": {[]string{"-o", "defaulted", "../vmi-hello.yaml", "testdata/machine.yaml"}, 0},
		"unserved":  {[]string{"testdata/unserved.yaml"}, 0},
		"refused":   {[]string{"testdata/refused.yaml"}, 1},
		"cluster":   {[]string{"-config", "testdata/cluster.yaml", "-feature-gates", "HostDisk,LiveMigration", "testdata/machine.yaml"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, notes := check("", tt.args...)
			golden.Equal(t, filepath.Join("testdata", name+".golden"), fmt.Appendf(nil, "%s# notes\n%s# exit status %d\n", out, notes, status))
			require.Equal(t, tt.status, status)
		})
	}
}

func TestStandardInput(t *testing.T) {
	data, err := os.ReadFile("../vmi-hello.yaml")
	require.NoError(t, err)
	status, out, notes := check(string(data), "-")
	require.Zero(t, status, "%s%s", out, notes)
	require.Empty(t, out)
}

func TestWhatCannotBeReadIsNoFault(t *testing.T) {
	for name, args := range map[string][]string{
		"no file":          {"testdata/nowhere.yaml"},
		"no configuration": {"-config", "testdata/nowhere.yaml", "-"},
		"no KubeVirt":      {"-config", "testdata/machine.yaml", "../vmi-hello.yaml"},
		"a wrong KubeVirt": {"-config", "testdata/configuration.yaml", "../vmi-hello.yaml"},
		"no argument":      {},
		"no such output":   {"-o", "json", "-"},
		"no such flag":     {"-x"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, notes := check("", args...)
			require.Equal(t, 2, status)
			require.Empty(t, out)
			require.NotEmpty(t, notes)
		})
	}
}

func TestAConfigurationIsCheckedToo(t *testing.T) {
	const fault = "testdata/configuration.yaml: KubeVirt/kubevirt: spec.configuration.network.defaultNetworkInterface: FieldValueInvalid: Invalid value: \"slirp\": must be bridge or masquerade\n"
	status, out, _ := check("", "testdata/configuration.yaml")
	require.Equal(t, 1, status)
	require.Equal(t, fault, out)
	_, _, notes := check("", "-config", "testdata/configuration.yaml", "../vmi-hello.yaml")
	require.Equal(t, fault, notes)
}

func TestTextThatIsNoObjectIsAFault(t *testing.T) {
	status, out, _ := check("a: b: c", "-")
	require.Equal(t, 1, status)
	require.Contains(t, out, "-: unknown/unnamed: : FieldValueInvalid: ")
	status, out, _ = check("just a word", "-")
	require.Equal(t, 1, status, out)
	status, _, notes := check("# only a comment\n---\n", "-")
	require.Zero(t, status)
	require.Empty(t, notes)
}
