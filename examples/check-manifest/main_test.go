package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testdata is that of the package that does the work.
const testdata = "../../vmi/manifest/testdata/"

func check(in string, args ...string) (status int, out, notes string) {
	var o, n bytes.Buffer
	status = run(args, strings.NewReader(in), &o, &n, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return status, o.String(), n.String()
}

func TestFaultsAreOnStandardOutputAndNotesAreNot(t *testing.T) {
	status, out, notes := check("", testdata+"refused.yaml", testdata+"unserved.yaml")
	require.Equal(t, 1, status)
	require.Contains(t, out, testdata+"refused.yaml: VirtualMachineInstance/old: spec.domain.devices.interfaces[0].slirp: FieldValueInvalid: ")
	require.NotContains(t, out, "not served yet")
	require.Contains(t, notes, testdata+"unserved.yaml: VirtualMachine/lasting: spec.template.spec.domain.devices.disks[0].lun.reservation: not served yet: ")
	require.NotContains(t, notes, "FieldValue")
}

// In a terminal both are on one screen.
func TestFaultsOfAllFilesAreBeforeWhatIsNotServed(t *testing.T) {
	var both bytes.Buffer
	status := run([]string{testdata + "both.yaml", testdata + "unserved.yaml", testdata + "others.yaml", testdata + "faults.yaml"}, strings.NewReader(""), &both, &both, time.Unix(0, 0))
	require.Equal(t, 1, status)
	state, n := "note", map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(both.String()), "\n") {
		now := "fault"
		switch {
		case strings.HasPrefix(line, "note: "):
			now = "note"
		case strings.HasPrefix(line, "faults: "):
			now = "sum"
		case strings.Contains(line, "not served yet: "):
			now = "unserved"
		}
		if now != state {
			require.Zero(t, n[now], "%s is not together: %s", now, both.String())
		}
		state = now
		n[now]++
	}
	require.Equal(t, "sum", state)
	require.Contains(t, both.String(), fmt.Sprintf("faults: %d, not served yet: %d ", n["fault"], n["unserved"]))
}

func TestTheConfigurationOfAClusterApplies(t *testing.T) {
	status, out, notes := check("", "-config", testdata+"cluster.yaml", "-feature-gates", "HostDisk,NoSuchGate", testdata+"vm.yaml")
	require.Equal(t, 1, status)
	require.Contains(t, out, "is switched off for the pod network in this cluster's configuration: use masquerade")
	require.Contains(t, notes, testdata+"cluster.yaml: KubeVirt/kubevirt: spec.configuration.migrations.disableTLS: not served yet: ")
	require.Contains(t, notes, "feature gates that switch nothing on here: NoSuchGate\n")
	status, _, _ = check("", testdata+"vm.yaml")
	require.Zero(t, status)
}

func TestTheDefaultedObjectsArePrinted(t *testing.T) {
	status, out, notes := check("", "-o", "defaulted", "../vmi-hello.yaml", testdata+"vm.yaml", testdata+"refused.yaml")
	require.Equal(t, 1, status)
	require.Equal(t, 3, strings.Count(out, "apiVersion: kubevirt.io/v1\n"))
	require.Equal(t, 2, strings.Count(out, "---\n"))
	require.Contains(t, out, "phaseTransitionTimestamp: \"2026-01-01T00:00:00Z\"")
	require.Contains(t, notes, "FieldValueInvalid")
}

func TestStandardInput(t *testing.T) {
	data, err := os.ReadFile("../vmi-hello.yaml")
	require.NoError(t, err)
	status, out, notes := check(string(data), "-")
	require.Zero(t, status, "%s%s", out, notes)
	require.Empty(t, out)
}

func TestAFileThatCannotBeReadIsNoFault(t *testing.T) {
	for name, args := range map[string][]string{
		"no file":          {"testdata/nowhere.yaml"},
		"no configuration": {"-config", "testdata/nowhere.yaml", "-"},
		"no KubeVirt":      {"-config", testdata + "vm.yaml", "../vmi-hello.yaml"},
		"a wrong KubeVirt": {"-config", testdata + "configuration.yaml", "../vmi-hello.yaml"},
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
