package launcher

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDevicesAreComparedByTheirAliases(t *testing.T) {
	root, data, nic := Device{"ua-root", "disk root", 10, ""}, Device{"ua-data", "disk data", 20, ""}, Device{Alias: "ua-default", Name: "interface default", Link: "up"}
	larger := data
	larger.SizeBytes = 30
	for name, tt := range map[string]struct {
		desired, actual []Device
		want            Difference
		text            string
	}{
		"none":                      {nil, nil, Difference{}, ""},
		"the same in another order": {[]Device{root, data, nic}, []Device{nic, data, root}, Difference{}, ""},
		"one more":                  {[]Device{root, data}, []Device{root}, Difference{Attach: []Device{data}}, "disk data is not attached"},
		"one less":                  {[]Device{root}, []Device{root, nic}, Difference{Detach: []Device{nic}}, "interface default is not detached"},
		"one that shall be another": {[]Device{larger, root}, []Device{root, data}, Difference{}, ""},
		"all at once": {[]Device{larger, nic}, []Device{data, root},
			Difference{Attach: []Device{nic}, Detach: []Device{root}},
			"interface default is not attached, disk root is not detached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Compare(tt.desired, tt.actual)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.text == "", got.Empty())
			require.Equal(t, tt.text, got.String())
		})
	}
}
