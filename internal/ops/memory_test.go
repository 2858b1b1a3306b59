package ops

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryIsReturnedAtRestOnly(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		r    returner
		now  memory
		want bool
	}{
		"nothing is known of before":          {returner{}, memory{1 * mib, 20 * mib, 80 * mib}, false},
		"at rest after a burst":               {returner{last: memory{allocated: 500 * mib}, held: 30 * mib}, memory{501 * mib, 20 * mib, 80 * mib}, true},
		"at rest for the first time":          {returner{last: memory{allocated: 500 * mib}}, memory{501 * mib, 20 * mib, 80 * mib}, true},
		"it works":                            {returner{last: memory{allocated: 500 * mib}, held: 30 * mib}, memory{530 * mib, 20 * mib, 80 * mib}, false},
		"it holds little more than it needs":  {returner{last: memory{allocated: 500 * mib}, held: 30 * mib}, memory{501 * mib, 20 * mib, 36 * mib}, false},
		"what it holds more became garbage":   {returner{last: memory{allocated: 500 * mib}, held: 30 * mib}, memory{501 * mib, 20 * mib, 38 * mib}, true},
		"it holds less than after the return": {returner{last: memory{allocated: 500 * mib}, held: 30 * mib}, memory{501 * mib, 20 * mib, 22 * mib}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.r.due(tt.now))
		})
	}
}

// kept is what the test below has in use for a while.
var kept [][]byte

func TestTheMemoryOfABurstIsReturned(t *testing.T) {
	const burst = 64 << 20
	for range burst >> 16 {
		kept = append(kept, make([]byte, 1<<16))
	}
	var r returner
	r.look()
	before := memoryNow()
	require.GreaterOrEqual(t, before.held, uint64(burst))
	kept = nil
	r.look()
	require.Less(t, memoryNow().held, before.held-burst/2)
}
