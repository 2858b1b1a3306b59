package verb

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestOptionsAreJSONOrYAML(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       vmi.StopOptions
		fault      string
	}{
		{"nothing", " \n", vmi.StopOptions{}, ""},
		{"JSON", `{"gracePeriod": 3, "dryRun": ["All"], "other": "X"}`, vmi.StopOptions{GracePeriod: new(int64(3)), DryRun: []string{"All"}}, ""},
		{"YAML", "gracePeriod: 3\nother: X\n", vmi.StopOptions{GracePeriod: new(int64(3))}, ""},
		{"an object of YAML in braces", `{gracePeriod: 3}`, vmi.StopOptions{GracePeriod: new(int64(3))}, ""},
		{"another type", `{"gracePeriod": {}}`, vmi.StopOptions{}, "Can not unmarshal Request body to struct, error:"},
		{"neither", "a: [", vmi.StopOptions{}, "Can not unmarshal Request body to struct, error:"},
		{"an alias", "a: &a x\nb: *a", vmi.StopOptions{}, "without the characters & and *"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o vmi.StopOptions
			err := decode([]byte(tt.body), &o)
			if tt.fault != "" {
				require.ErrorContains(t, err, tt.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, o)
		})
	}
}
