package metrics

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// onNode is a VMI on node n1 with two processors.
func onNode(labels map[string]string) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithCores(2))
	v.Status.NodeName, v.Labels = "n1", labels
	return v
}

// counted are the statistics of processors, with times of 1 s, 2 s and so on, in states.
func counted(states ...float64) (s protocol.Stats) {
	for n, state := range states {
		s.Parts = append(s.Parts, protocol.Part{Group: protocol.VCPU, Number: n, Values: map[protocol.Stat]float64{
			protocol.VCPUTime: float64(n+1) * 1e9, protocol.VCPUState: state,
		}})
	}
	return s
}

// text are the series as they are served.
func text(all []series.Series) (out []string) {
	for _, s := range all {
		var labels []string
		for _, l := range s.Labels {
			labels = append(labels, fmt.Sprintf("%s=%q", l.Name, l.Value))
		}
		out = append(out, fmt.Sprintf("%s{%s} %v", s.Name, strings.Join(labels, ","), s.Value))
	}
	return out
}

func TestTheTimeOfEachProcessorIsASeries(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		`kubevirt_vmi_vcpu_seconds_total{id="0",name="testvmi",namespace="default",node="n1",state="running"} 1`,
		`kubevirt_vmi_vcpu_seconds_total{id="1",name="testvmi",namespace="default",node="n1",state="blocked"} 2`,
	}, text(Of(Observation{Instance: onNode(nil), Stats: counted(1, 2)})))
	require.Empty(t, Of(Observation{Instance: onNode(nil)}), "nothing is counted")
}

func TestAStateIsOneOfFourWords(t *testing.T) {
	t.Parallel()
	for state, want := range map[float64]string{0: "offline", 1: "running", 2: "blocked", 3: "unknown", 1.5: "unknown", 1 << 60: "unknown"} {
		require.Equal(t, []string{`kubevirt_vmi_vcpu_seconds_total{id="0",name="testvmi",namespace="default",node="n1",state="` + want + `"} 1`},
			text(Of(Observation{Instance: onNode(nil), Stats: counted(state)})))
	}
	s := counted(1)
	delete(s.Parts[0].Values, protocol.VCPUState)
	require.Contains(t, text(Of(Observation{Instance: onNode(nil), Stats: s}))[0], `state="unknown"`)
}

func TestTheLabelsOfAVMIAreColumns(t *testing.T) {
	t.Parallel()
	v := onNode(map[string]string{"kubevirt.io/domain": "vm-1", "app": "web", "empty": "", "a-b": "first", "a.b": "dropped", "a/b": "dropped"})
	require.Equal(t, []string{`kubevirt_vmi_vcpu_seconds_total{id="0",kubernetes_vmi_label_a_b="first",kubernetes_vmi_label_app="web",` +
		`kubernetes_vmi_label_kubevirt_io_domain="vm-1",name="testvmi",namespace="default",node="n1",state="running"} 1`},
		text(Of(Observation{Instance: v, Stats: counted(1)})))
	many := map[string]string{}
	for i := range 3 * mostLabels {
		many[fmt.Sprintf("label%03d", i)] = "x"
	}
	require.Len(t, Of(Observation{Instance: onNode(many), Stats: counted(1)})[0].Labels, mostLabels+5)
}

func TestAttackALauncherMakesNoSeriesThatItsVMIDoesNotHave(t *testing.T) {
	t.Parallel()
	states := make([]float64, 500)
	require.Len(t, Of(Observation{Instance: onNode(nil), Stats: counted(states...)}), 2, "the VMI has two processors")
	twice := counted(1)
	twice.Parts = append(twice.Parts, twice.Parts...)
	require.Len(t, Of(Observation{Instance: onNode(nil), Stats: twice}), 1)
}

func TestEachMetricHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range All() {
		require.Regexp(t, regexp.MustCompile(`^(kubevirt|podvisor)_vmi_[a-z0-9_]+$`), m.Name)
		require.False(t, seen[m.Name], m.Name)
		seen[m.Name] = true
		require.NotEmpty(t, m.Help, m.Name)
		require.Contains(t, []series.Type{series.Counter, series.Gauge}, m.Type, m.Name)
		require.Equal(t, m.Type == series.Counter, strings.HasSuffix(m.Name, "_total"), m.Name)
	}
	require.NotEmpty(t, seen)
}

func ExampleOf() {
	v := vmitest.New()
	v.Status.NodeName = "n1"
	stats := protocol.NewStats(map[string]any{"vcpu.0.time": uint64(1_500_000_000), "vcpu.0.state": int32(1)})
	for _, s := range Of(Observation{Instance: v, Stats: stats}) {
		fmt.Println(s.Name, s.Labels, s.Value)
	}
	// Output:
	// kubevirt_vmi_vcpu_seconds_total [{id 0} {name testvmi} {namespace default} {node n1} {state running}] 1.5
}
