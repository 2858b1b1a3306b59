package archtest

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func files(t *testing.T) []File {
	t.Helper()
	f, err := Files(root)
	require.NoError(t, err)
	require.NotEmpty(t, f)
	return f
}

func TestEveryPackageHasALayer(t *testing.T) {
	for _, f := range files(t) {
		require.NotEqual(t, Unknown, LayerOf(f), "%s: the package %s is in no list of layer.go", f.Path, f.Package())
	}
	require.Equal(t, Unknown, LayerOf(File{Path: "launcher/monitor/monitor.go"}))
}

func TestLayersImportWhatTheyMay(t *testing.T) {
	for _, f := range files(t) {
		for _, i := range f.Imports {
			if why := forbidden(f, i); why != "" {
				t.Errorf("%s (%s) imports %s: %s", f.Path, LayerOf(f), i, why)
			}
		}
	}
}

func TestTheRulesCatchWhatTheyShould(t *testing.T) {
	for name, tt := range map[string]struct {
		file, imports string
		wrong         bool
	}{
		"core may not open files":                    {"launcher/domain/disk.go", "os", true},
		"core may not read the network":              {"network/plan.go", "net", true},
		"core may use addresses as values":           {"network/plan.go", "net/netip", false},
		"core may not import an edge":                {"launcher/decide.go", Module + "/internal/launcher/libvirt", true},
		"an edge may not import another":             {"internal/storage/image/qcow2.go", Module + "/internal/storage/probe", true},
		"an edge may import core":                    {"internal/storage/image/qcow2.go", Module + "/storage", false},
		"a controller joins edges":                   {"launcher/supervisor/run.go", Module + "/internal/launcher/libvirt", false},
		"the handler does not know the scheduler":    {"handler/controller/loop.go", Module + "/scheduler/pod", true},
		"the handler uses the control protocol":      {"handler/controller/loop.go", Module + "/launcher/control", false},
		"only the handler's controller uses it":      {"handler/decide.go", Module + "/launcher/control", true},
		"the handler uses the protocol's types":      {"handler/decide.go", Module + "/launcher/protocol", false},
		"so does the scheduler":                      {"scheduler/instance/decide.go", Module + "/launcher/protocol", false},
		"the scheduler uses nothing else of it":      {"scheduler/subresource/stream.go", Module + "/launcher/control", true},
		"the protocol knows no launcher":             {"launcher/protocol/state.go", Module + "/launcher", true},
		"the protocol knows no handler":              {"launcher/protocol/state.go", Module + "/handler", true},
		"the protocol uses the model":                {"launcher/protocol/state.go", Module + "/vmi", false},
		"the model imports nothing of ours":          {"vmi/disk.go", Module + "/network", true},
		"nothing under vmi imports another tree":     {"vmi/config/live/watcher.go", Module + "/scheduler/instance", true},
		"not even one of the core":                   {"vmi/kinds/table.go", Module + "/network", true},
		"the table joins the packages under vmi":     {"vmi/kinds/table.go", Module + "/vmi/validate", false},
		"the factory has a client":                   {"vmi/client/informer/factory.go", Module + "/vmi/client", false},
		"a client has no informers":                  {"vmi/client/client.go", Module + "/vmi/client/informer", true},
		"apply configurations are values":            {"vmi/applyconfiguration/a.go", "k8s.io/client-go/applyconfigurations/meta/v1", false},
		"clients do without the validation":          {"vmi/client/client.go", Module + "/vmi/kinds", true},
		"admission is of the cluster's side":         {"scheduler/admission/eviction.go", Module + "/scheduler/instance", false},
		"an example imports no internal package":     {"examples/console/main.go", Module + "/internal/carry", true},
		"an example imports the library":             {"examples/console/main.go", Module + "/launcher/terminal", false},
		"klog is for binaries":                       {"handler/controller/loop.go", "k8s.io/klog/v2", true},
		"the edge file beside a core may open files": {"internal/network/nft/apply.go", "os", false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.wrong, forbidden(File{Path: tt.file}, tt.imports) != "")
		})
	}
}

func TestCoreCallsNoClockAndNoRandomSource(t *testing.T) {
	for _, f := range files(t) {
		if LayerOf(f) != Core {
			continue
		}
		for _, c := range append(f.calls("time", "Now", "Since", "Until", "After", "Sleep", "NewTimer", "Tick"), f.calls("rand", "Int", "IntN", "Read", "Float64", "N", "New")...) {
			t.Errorf("%s calls %s: time and random numbers come in as arguments", f.Path, c)
		}
	}
}

// onePlace says in which file alone a type's literals may stand.
var onePlace = []struct{ pkg, name, file string }{
	{"libvirtxml", "DomainDisk", "launcher/domain/disk.go"},
	{"libvirtxml", "DomainInterface", "launcher/domain/iface.go"},
	{"libvirtxml", "DomainRNG", "launcher/domain/rng.go"},
	{"libvirtxml", "Domain", "launcher/domain/domain.go"},
	{"corev1", "Pod", "scheduler/pod/pod.go"},
}

func TestATypeIsFilledInOneFile(t *testing.T) {
	all := files(t)
	for _, p := range onePlace {
		for _, f := range all {
			if f.Path != p.file && f.filled(p.pkg, p.name) > 0 {
				t.Errorf("%s fills a %s.%s; only %s does", f.Path, p.pkg, p.name, p.file)
			}
		}
	}
}

// badNames are names that do not describe what is in a package or file.
var badNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "consts", "base", "manager", "service", "api"}

func TestNamesDescribeWhatIsInside(t *testing.T) {
	for _, f := range files(t) {
		stem := strings.TrimSuffix(path.Base(f.Path), ".go")
		for _, bad := range badNames {
			if stem == bad || path.Base(f.Package()) == bad {
				t.Errorf("%s: %q does not describe what is inside", f.Path, bad)
			}
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	commented := map[string]bool{}
	for _, f := range files(t) {
		commented[f.Package()] = commented[f.Package()] || f.syntax.Doc != nil
	}
	for p, ok := range commented {
		require.True(t, ok, "package %s has no package comment", p)
	}
}

func TestFilesStaySmall(t *testing.T) {
	for _, f := range files(t) {
		if strings.HasPrefix(path.Base(f.Path), "zz_generated") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, f.Path))
		require.NoError(t, err)
		if n := bytes.Count(b, []byte("\n")); n > 600 {
			t.Errorf("%s has %d lines: split it by noun", f.Path, n)
		}
		if LayerOf(f) == Binary && strings.HasPrefix(f.Path, "cmd/") && bytes.Count(b, []byte("\n")) > 80 {
			t.Errorf("%s has more than 80 lines: a binary is flags, a Config and Run", f.Path)
		}
	}
}

// widest is the longest line of code and comments, in bytes. A marker cannot be split.
const widest = 180

func TestLinesStayShort(t *testing.T) {
	for _, f := range files(t) {
		if ast.IsGenerated(f.syntax) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, f.Path))
		require.NoError(t, err)
		for i, line := range strings.Split(string(b), "\n") {
			if marker := strings.HasPrefix(strings.TrimSpace(line), "// +"); !marker && len(line) > widest {
				t.Errorf("%s:%d has %d bytes: split the line", f.Path, i+1, len(line))
			}
		}
	}
}

func TestTheModuleIsEasyToImport(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	require.NotRegexp(t, `(?m)^\s*replace\b`, string(mod), "importers do not inherit a replace")
}

func TestErrorsAreNotReadAsText(t *testing.T) {
	for _, f := range files(t) {
		b, err := os.ReadFile(filepath.Join(root, f.Path))
		require.NoError(t, err)
		require.NotRegexp(t, `strings\.(Contains|HasPrefix|HasSuffix)\([a-zA-Z]*[eE]rr\.Error\(\)`, string(b), "%s decides by the text of an error", f.Path)
	}
}
