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
		want            difference
		text            string
	}{
		"none":                      {nil, nil, difference{}, ""},
		"the same in another order": {[]Device{root, data, nic}, []Device{nic, data, root}, difference{}, ""},
		"one more":                  {[]Device{root, data}, []Device{root}, difference{Attach: []Device{data}}, "disk data is not attached"},
		"one less":                  {[]Device{root}, []Device{root, nic}, difference{Detach: []Device{nic}}, "interface default is not detached"},
		"one that shall be another": {[]Device{larger, root}, []Device{root, data}, difference{}, ""},
		"all at once": {[]Device{larger, nic}, []Device{data, root},
			difference{Attach: []Device{nic}, Detach: []Device{root}},
			"interface default is not attached, disk root is not detached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compare(tt.desired, tt.actual)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.text == "", got.Empty())
			require.Equal(t, tt.text, got.String())
		})
	}
}
