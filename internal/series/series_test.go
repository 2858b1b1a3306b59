package series

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// table are metrics of numbers.
var table = []Metric[int]{
	{Info: Info{Name: "twice", Type: Gauge, Labels: []string{"z", "a"}}, Read: func(o int, add func(float64, ...string)) {
		add(float64(2*o), "1", "")
		add(9, "1", "")
		add(3, "2", "x")
	}},
	{
		Info: Info{Name: "bare", Type: Counter}, Common: func(int) []Label { return []Label{{"own", "y"}} },
		Read: func(o int, add func(float64, ...string)) { add(float64(o)) },
	},
}

func TestASeriesHasTheCommonLabelsAndItsOwn(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range Of(table, 5, []Label{{"node", "n"}, {"empty", ""}}) {
		got = append(got, fmt.Sprintf("%s%v %v", s.Name, s.Labels, s.Value))
	}
	require.Equal(t, []string{"twice[{node n} {z 1}] 10", "twice[{a x} {node n} {z 2}] 3", "bare[{own y}] 5"}, got)
	require.Equal(t, []Info{table[0].Info, table[1].Info}, Infos(table))
}
