package protocol

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
)

var counted = Stats{Parts: []Part{
	{Group: Block, Number: 1, Name: "vdb", Values: map[Stat]float64{ReadRequests: 5}},
	{Group: VCPU, Number: 0, Values: map[Stat]float64{VCPUTime: 1_500_000_000, VCPUState: 1}},
	{Group: VCPU, Number: 2, Values: map[Stat]float64{VCPUTime: 7}},
}}

func TestStatsAreWhatLibvirtCounts(t *testing.T) {
	require.Equal(t, counted, NewStats(map[string]any{
		"vcpu.current": uint32(2), "vcpu.maximum": uint32(3), "vcpu.0.state": int32(1), "vcpu.0.time": uint64(1_500_000_000), "vcpu.0.halted": "no",
		"vcpu.2.time": uint64(7), "vcpu.2.state": "running", "vcpu.x.time": uint64(1), "vcpu.99999.time": uint64(1), "vcpu": uint64(1), "block.0.name": "vda", "": uint64(1),
		"block.1.name": "vdb", "block.1.rd.reqs": uint64(5), "block.count": uint32(2), "dirtyrate.megabytes_per_second": int64(3),
	}))
	require.Empty(t, NewStats(nil))
	require.Equal(t, counted.Parts[1:], counted.Of(VCPU))
	require.Empty(t, counted.Of(Net))
}

func TestStatsHaveTheirForm(t *testing.T) {
	b, err := json.MarshalIndent(counted, "", "  ")
	require.NoError(t, err)
	golden.Equal(t, filepath.Join("testdata", "stats.json"), append(b, '\n'))
}

func TestStatsThatFitAreKept(t *testing.T) {
	require.Equal(t, counted, counted.Sanitized())
}

func TestAttackTheMetricsByTheStatsOfALauncher(t *testing.T) {
	one := map[Stat]float64{VCPUTime: 1}
	var many Stats
	for i := range 3 * maxParts {
		many.Parts = append(many.Parts, Part{Group: VCPU, Number: i % (2 * maxParts), Values: one})
	}
	require.Len(t, many.Sanitized().Parts, maxParts)
	for name, p := range map[string]Part{
		"a group that is not counted":      {Group: "disk\x1b", Values: one},
		"a count of another group":         {Group: Block, Values: one},
		"a count that is none":             {Group: VCPU, Values: map[Stat]float64{"vcpu.secret": 1}},
		"a number below the first part":    {Group: VCPU, Number: -1, Values: one},
		"a number beyond all parts":        {Group: VCPU, Number: maxParts, Values: one},
		"nothing":                          {Group: VCPU},
		"less than nothing":                {Group: VCPU, Values: map[Stat]float64{VCPUTime: -1}},
		"no number":                        {Group: VCPU, Values: map[Stat]float64{VCPUTime: math.NaN()}},
		"more than libvirt can count":      {Group: VCPU, Values: map[Stat]float64{VCPUTime: math.Inf(1)}},
		"much more than libvirt can count": {Group: VCPU, Values: map[Stat]float64{VCPUTime: 1e300}},
	} {
		require.Empty(t, Stats{Parts: []Part{p}}.Sanitized().Parts, name)
	}
	texts := Part{Group: FileSystem, Name: "vda1\x1b[2J", MountPoint: strings.Repeat("/a", 2*maxPlace), Type: "ext4\u202e", Values: map[Stat]float64{FileSystemUsed: 1}}
	got := Stats{Parts: []Part{texts}}.Sanitized().Parts[0]
	require.Equal(t, []string{"vda1 [2J", "ext4 "}, []string{got.Name, got.Type})
	require.Len(t, got.MountPoint, maxPlace)
	texts.Group, texts.Values = VCPU, one
	require.Equal(t, []Part{{Group: VCPU, Values: one}}, Stats{Parts: []Part{texts}}.Sanitized().Parts, "a processor has no name")
	twice := Stats{Parts: []Part{{Group: VCPU, Values: one}, {Group: VCPU, Values: map[Stat]float64{VCPUTime: 2}}}}
	require.Equal(t, []Part{{Group: VCPU, Values: one}}, twice.Sanitized().Parts, "a part is there once")
}

// FuzzStats reads what a launcher may send.
func FuzzStats(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "stats.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"parts":[{"group":"vcpu","number":-1,"values":{"vcpu.time":1e308}},{"group":"vcpu","values":null}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Stats
		if json.Unmarshal(b, &s) != nil {
			return
		}
		s = s.Sanitized()
		require.Equal(t, s, s.Sanitized(), "it is stable")
		for _, p := range s.Parts {
			require.LessOrEqual(t, max(len(p.Name), len(p.MountPoint), len(p.Type)), maxPlace)
			for stat, v := range p.Values {
				require.Contains(t, stats, stat)
				require.Equal(t, p.Group, stat.Group())
				require.False(t, math.IsNaN(v) || v < 0 || v > math.MaxUint64)
			}
		}
	})
}
