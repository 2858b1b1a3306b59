package effect

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
)

// What the validation of the library accepts is rendered, bound and built, and libvirt's
// schema has it: no VMI fails later for what its spec alone shows. That the API server
// accepts the same objects, TestTheLibraryJudgesAsTheAPIServer requires.
func TestWhatIsAcceptedIsMade(t *testing.T) {
	xmllint := testenv.Program(t, "xmllint")
	schema, knows := testenv.DomainSchema(t)
	most := 1500
	if os.Getenv("JUDGE") == "all" {
		most = 0
	}
	all, err := Objects("../..", 1, most)
	require.NoError(t, err)
	c := kinds.Cluster{Defaults: permissive.Defaults, Limits: permissive.Limits}
	dir, names, seen := t.TempDir(), map[string]string{}, map[string]bool{}
	accepted := 0
	for _, o := range all {
		text, err := yaml.Marshal(o.Tree)
		require.NoError(t, err)
		judged, err := manifest.Check(text, c)
		require.NoError(t, err, o.Name)
		require.Len(t, judged, 1, o.Name)
		if len(judged[0].Faults)+len(judged[0].Unserved) > 0 {
			continue
		}
		accepted++
		made, err := Make(judged[0].Instance(c))
		if err != nil {
			t.Errorf("%s: accepted, and then: %v", o.Name, err)
			continue
		}
		if pvpanic := string(vmi.PanicDevicePVPanic); !knows(pvpanic) && strings.Contains(made.Domain, `<panic model="`+pvpanic+`">`) {
			continue // libvirt 9.1 and newer have it
		}
		if seen[made.Domain] {
			continue
		}
		seen[made.Domain] = true
		file := filepath.Join(dir, fmt.Sprintf("%05d.xml", len(names)))
		names[file] = o.Name
		require.NoError(t, os.WriteFile(file, []byte(made.Domain), 0o600))
	}
	t.Logf("%d objects, of which %d are accepted, with %d different domains", len(all), accepted, len(names))
	require.Greater(t, len(names), 80)
	files, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	require.NoError(t, err)
	for len(files) > 0 {
		n := min(len(files), 1000)
		out, err := exec.Command(xmllint, append([]string{"--noout", "--relaxng", schema}, files[:n]...)...).CombinedOutput()
		if err != nil {
			for _, line := range strings.Split(string(out), "\n") {
				if file, ok := strings.CutSuffix(line, " fails to validate"); ok {
					t.Errorf("%s is not what the schema allows", names[file])
				}
			}
		}
		files = files[n:]
	}
}
