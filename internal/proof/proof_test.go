package proof_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/proof"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// served are the kinds with served fields.
func served() []string {
	var out []string
	for _, k := range kinds.All() {
		if k.Served() {
			out = append(out, k.Kind)
		}
	}
	return out
}

// field is a line of docs/fields.md.
type field struct {
	path, state, place, last string
}

// fields are the lines of a kind.
func fields(t *testing.T, kind string) []field {
	t.Helper()
	text, err := os.ReadFile("../../docs/fields.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "\n## "+kind+"\n")
	require.True(t, ok, kind)
	rest, _, _ = strings.Cut(rest, "\n## ")
	var out []field
	for line := range strings.Lines(rest) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		out = append(out, field{cells[1], cells[3], cells[4], cells[5]})
	}
	require.NotEmpty(t, out, kind)
	return out
}

func TestEveryServedFieldSaysWhereATestSeesItsEffect(t *testing.T) {
	t.Parallel()
	for _, kind := range served() {
		all := fields(t, kind)
		for i, f := range all {
			above := i+1 < len(all) && (strings.HasPrefix(all[i+1].path, f.path+".") || all[i+1].path == f.path+"{}")
			if f.state == "served" && !above && f.path != "spec.template.spec" && f.path != "spec.virtualMachineTemplate.spec" {
				require.NotEmpty(t, f.place, "%s: %s: name in this package the test that sees its effect, and make generate", kind, f.path)
			}
		}
	}
}

func TestEveryProofIsOfAServedField(t *testing.T) {
	t.Parallel()
	for _, kind := range served() {
		served, used := map[string]bool{}, map[string]bool{}
		for _, f := range fields(t, kind) {
			if f.state != "served" {
				continue
			}
			served[f.path] = true
			if p, ok := proof.Of(kind, f.path); ok && f.place != "" {
				used[p.Path] = true
			}
		}
		before := ""
		for _, p := range proof.All(kind) {
			require.NotEqual(t, before, p.Path, "%s: two tests", kind)
			require.True(t, served[p.Path], "%s: %s is not served", kind, p.Path)
			require.True(t, used[p.Path], "%s: %s: each field below it has a proof of its own", kind, p.Path)
			before = p.Path
		}
	}
}

func TestTheNearestProofCounts(t *testing.T) {
	t.Parallel()
	const kind = "VirtualMachineInstance"
	for path, want := range map[string]proof.Place{
		"spec.readinessProbe.tcpSocket.port":    proof.Guest,
		"spec.readinessProbe.periodSeconds":     proof.XML,
		"spec.accessCredentials[].userPassword": proof.Guest,
		"spec.nodeSelector{}":                   proof.Pod,
	} {
		p, ok := proof.Of(kind, path)
		require.True(t, ok, path)
		require.Equal(t, want, p.Place, path)
	}
	_, ok := proof.Of(kind, "spec.domains")
	require.False(t, ok, "a name that begins alike is another field")
	_, ok = proof.Of("Pod", "spec")
	require.False(t, ok)
}
