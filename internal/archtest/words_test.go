package archtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheWordsAreThoseOfTheHouseStyle(t *testing.T) {
	all, err := Texts(root)
	require.NoError(t, err)
	for _, known := range []string{
		"README.md", "Makefile", ".ci/run", "hack/test", "vmi/domain.go", "manifests/webhooks.yaml",
		"images/virt-handler/Containerfile", "e2e/harness_test.go", "images/demo-guest/init/main.go",
	} {
		require.Contains(t, all, known)
	}
	require.NotContains(t, all, "manifests/crds/kubevirt.io_virtualmachines.yaml")
	require.NotContains(t, all, "vmi/zz_generated.deepcopy.go")
	for _, path := range all {
		faults, err := WordsIn(root, path)
		require.NoError(t, err)
		for _, f := range faults {
			t.Error(f)
		}
	}
}

func TestABannedWordIsFound(t *testing.T) {
	for _, text := range []string{
		"// The machine is gone.", "Machines are created", "func TestAMachineRuns(", "const machine_name = 1", "machineLog := 1", "var machine vmi.VirtualMachine",
		"// a busy machine.\n// Types follow", "the machine,\n// type",
		"while nobody answers", `"somebody else's label"`, "TestAnOutageStopsNobody", "func(anybody string)",
		"const removePatience = 1", "eventually(t, patient, f)", "waits in vain", "its last words", "plumbing", "Plumb(", "stands aside", "hopeless",
		"Out is told every step", "tells the handler", "d.hear(line)", "has heard of it", "speaks netlink", "the protocol that it spoke",
		"is to blame", "blamedBefore", "It lives in a namespace", "gives up", "gave up", "who may create", "lets it go", "let go of it", "lets its guest go",
	} {
		require.NotEmpty(t, Words(text), text)
	}
}

func TestAnAllowedUseOfAWordIsNoFault(t *testing.T) {
	for _, text := range []string{
		"runs virtual machines", "a virtual\n\t// machine", "VirtualMachineInstance", "virtual-machine", "virtualmachineinstances", "TestAVirtualMachineIsStarted",
		"the machine type q35", "the machine\n// type", "# the machine\n  # types", "MachineTypeFault(machineTypes)", "set machine.type to one of", "machine-type.node.kubevirt.io/q35", "emulatedMachines: [q35]",
		"	Machine *Machine `json:\"machine,omitempty\"`", "	Machine string `json:\"machine,omitempty\"`", "type Machine struct {", "&vmi.Machine{Type: t}", "s.Machine = x", "protocol.State{Machine: x}",
		`at.Child("domain", "machine", "type")`, "domain: {machine: {type: q35}}", "    machine:\n      type: q35", "<type arch='x86_64' machine='q35'>", "<machine maxCpus=\"1\">isapc</machine>", "/machine/peripheral/ua-a", "/etc/machine-id",
		`"OtherMachine"`, "k8s.io/apimachinery/pkg/types", "g.Arch.Machines",
		"r.Body = http.NoBody", "the shearing of intel", "outlives", "who maybe", "let its",
	} {
		require.Empty(t, Words(text), text)
	}
}

func TestANameIsSplitBeforeItsCapitalLetters(t *testing.T) {
	require.Equal(t, "a domain xml of vm7 is ß é\nread io pci address", split("aDomainXMLOfVM7Is ß É\nread_IO PCIAddress"))
}

func TestAFaultHasItsLine(t *testing.T) {
	require.Equal(t, []string{
		`2: "nobody": write the process, the user, or no and a noun`,
		`4: "machine": write VMI, VM, guest, domain, host or node; a machine is a machine type`,
		`4: "told": write report, write, send, get, use or read`,
	}, Words("// the machine\n// type that nobody has,\n// a virtual\n// machine or machine is told\n"))
}
