package launcher

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDevicesAreComparedByTheirAliases(t *testing.T) {
	root, data, nic := Device{"ua-root", "disk root", 10, ""}, Device{"ua-data", "disk data", 20, ""}, Device{Alias: "ua-default", Name: "interface default", Link: "up"}
	down := nic
	down.Link = "down"
	larger := data
	larger.SizeBytes = 30
	unknown := data
	unknown.SizeBytes = 0
	for name, tt := range map[string]struct {
		desired, actual []Device
		want            Difference
		text            string
	}{
		"none":                               {nil, nil, Difference{}, ""},
		"the same in another order":          {[]Device{root, data, nic}, []Device{nic, data, root}, Difference{}, ""},
		"one more":                           {[]Device{root, data}, []Device{root}, Difference{Attach: []Device{data}}, "disk data is not attached"},
		"one less":                           {[]Device{root}, []Device{root, nic}, Difference{Detach: []Device{nic}}, "interface default is not detached"},
		"one that grew":                      {[]Device{larger, root}, []Device{root, data}, Difference{Resize: []Device{larger}}, "disk data is not resized"},
		"one whose size is not known yet":    {[]Device{unknown}, []Device{data}, Difference{}, ""},
		"one whose size cannot be looked up": {[]Device{data}, []Device{unknown}, Difference{}, ""},
		"one whose link shall be down":       {[]Device{down, root}, []Device{root, nic}, Difference{Switch: []Device{down}}, "interface default is not switched"},
		"all at once": {[]Device{larger, nic}, []Device{data, root},
			Difference{Attach: []Device{nic}, Detach: []Device{root}, Resize: []Device{larger}},
			"interface default is not attached, disk root is not detached, disk data is not resized"},
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
