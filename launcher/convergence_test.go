package launcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestASendingThatDoesNotConvergeIsHelpedOrAborted(t *testing.T) {
	t.Parallel()
	const slow, stuck = "was not complete after", "did not become fewer for 30s"
	tests := []struct {
		name     string
		settings protocol.MigrationSettings
		bytes    int64
		// remaining is how much is left after each ten seconds.
		remaining []int64
		mode      vmi.MigrationMode
		abort     string
		// after is how many looks there were.
		after int
	}{
		{"no limit, no progress needed", protocol.MigrationSettings{}, 1, []int64{9, 9, 9, 9, 9, 9}, vmi.MigrationPreCopy, "", 6},
		{"progress", protocol.MigrationSettings{ProgressSeconds: 30}, 1, []int64{9, 8, 8, 8, 7, 7}, vmi.MigrationPreCopy, "", 6},
		{"no progress", protocol.MigrationSettings{ProgressSeconds: 30}, 1, []int64{9, 8, 8, 9, 9, 9, 9}, vmi.MigrationPreCopy, stuck, 6},
		{"less than the look before is progress, though not the least", protocol.MigrationSettings{ProgressSeconds: 30}, 1, []int64{5, 9, 8, 7, 6, 5, 5}, vmi.MigrationPreCopy, "", 7},
		{"nothing is left", protocol.MigrationSettings{ProgressSeconds: 30}, 1, []int64{0, 0, 0, 0, 0, 0}, vmi.MigrationPreCopy, "", 6},
		{"late", protocol.MigrationSettings{SecondsPerGB: 20}, 1, []int64{9, 8, 7, 6}, vmi.MigrationPreCopy, slow + " 20s", 3},
		{"a GB is decimal and rounded up", protocol.MigrationSettings{SecondsPerGB: 20}, 1_000_000_001, []int64{9, 8, 7, 6, 5, 4}, vmi.MigrationPreCopy, slow + " 40s", 5},
		{"late, and the guest may be paused, for twice the time", protocol.MigrationSettings{SecondsPerGB: 20, Disruption: true}, 1, []int64{9, 8, 7, 6, 5, 4}, vmi.MigrationPaused, slow + " 40s", 5},
		{"late, and post-copy is permitted", protocol.MigrationSettings{SecondsPerGB: 20, Disruption: true, PostCopy: true, ProgressSeconds: 10}, 1, []int64{9, 8, 7, 7, 7, 7, 7}, vmi.MigrationPostCopy, "", 7},
		{"late, post-copy is permitted, and no disruption", protocol.MigrationSettings{SecondsPerGB: 20, PostCopy: true}, 1, []int64{9, 8, 7}, vmi.MigrationPreCopy, slow, 3},
		{"no progress, before it is late", protocol.MigrationSettings{SecondsPerGB: 100, ProgressSeconds: 30, Disruption: true}, 1, []int64{9, 9, 9, 9, 9, 9}, vmi.MigrationPreCopy, stuck, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			c, abort, looks := Convergence{Settings: tt.settings, Bytes: tt.bytes, Began: began, Mode: vmi.MigrationPreCopy}, "", 0
			for i, left := range tt.remaining {
				if c, abort = c.Look(left, 1, began.Add(time.Duration(i+1)*10*time.Second)); abort != "" {
					require.Contains(t, abort, "has been aborted")
				}
				if looks++; abort != "" {
					break
				}
			}
			require.Contains(t, abort, tt.abort)
			require.Equal(t, tt.abort == "", abort == "", abort)
			require.Equal(t, tt.mode, c.Mode)
			require.Equal(t, tt.after, looks)
		})
	}
}

func TestAGuestStandsStillForLongerOnlyIfItsMemoryDoesNotSettle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		most   int64
		passes []int64
		want   []int // milliseconds, after each look
	}{
		"the memory is sent once or twice":  {900, []int64{1, 1, 2, 2}, []int{20, 20, 20, 20}},
		"it does not settle":                {900, []int64{1, 2, 3, 5, 6, 7, 9, 11, 12}, []int{20, 20, 40, 80, 160, 320, 640, 900, 900}},
		"the settings have no limit":        {0, []int64{3, 3, 3, 3, 3}, []int{40, 80, 160, 300, 300}},
		"the limit is less than usual":      {5, []int64{1, 3, 4}, []int{5, 5, 5}},
		"the limit is between the doubles":  {30, []int64{1, 3, 4}, []int{20, 30, 30}},
		"no pass is known, as of old QEMUs": {900, []int64{0, 0}, []int{20, 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Convergence{Settings: protocol.MigrationSettings{DowntimeMillis: tt.most}}
			var got []int
			for _, pass := range tt.passes {
				c, _ = c.Look(1, pass, time.Now())
				got = append(got, int(c.Downtime.Milliseconds()))
			}
			require.Equal(t, tt.want, got)
		})
	}
}
