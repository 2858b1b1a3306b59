package control

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestAttackByStatesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]string{
		"many disks":        `{"phase":"Running","disks":[{}` + strings.Repeat(",{}", maxValues) + `]}`,
		"many lists":        `{"phase":"Running","x":` + strings.Repeat("[", maxValues+1) + strings.Repeat("]", maxValues+1) + `}`,
		"a long text":       `{"phase":"Running","machine":"` + strings.Repeat("a", maxState) + `"}`,
		"no end":            `{"phase":"Running","machine":"` + strings.Repeat("a", 100*maxState),
		"a number too high": `{"phase":"Running","reboots":1e999999999}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := handling(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, state+"\n") }))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.State(t.Context())
			require.Error(t, err)
			require.Less(t, len(err.Error()), 2*maxText)
			var faults int
			for _, err := range c.Watch(t.Context()) {
				require.Error(t, err)
				require.Less(t, len(err.Error()), 2*maxText)
				faults++
			}
			require.NotZero(t, faults)
			runtime.ReadMemStats(&after)
			t.Logf("%d KiB were allocated", (after.TotalAlloc-before.TotalAlloc)>>10)
		})
	}
}

func TestAttackByStatesWithoutEnd(t *testing.T) {
	t.Parallel()
	c := handling(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := 0; r.Context().Err() == nil; i++ {
			if _, err := fmt.Fprintf(w, "{\"phase\":\"Running\",\"reboots\":%d}\n", i); err != nil {
				return
			}
			if i%100 == 99 {
				return // another connection
			}
		}
	}))
	states, began := 0, time.Now()
	for time.Since(began) < 2*time.Second {
		for _, err := range c.Watch(t.Context()) {
			if err == nil {
				states++
			}
			if time.Since(began) > 2*time.Second {
				break
			}
		}
	}
	t.Logf("%d states in %s", states, time.Since(began))
	require.LessOrEqual(t, float64(states), statesAtOnce/leastLine+time.Since(began).Seconds()*statesPerSecond/leastLine+1)
	require.Greater(t, states, 100)
}

func TestTheLargestStateThatALauncherSendsIsRead(t *testing.T) {
	t.Parallel()
	want := protocol.State{Phase: protocol.Running, Machine: "pc-q35-9.2"}
	for i := range 512 {
		want.Disks = append(want.Disks, protocol.Disk{Name: fmt.Sprintf("%063d", i), Target: fmt.Sprintf("vd%04d", i), SizeBytes: 1 << 50})
	}
	server, c := serve(t, ServerConfig{})
	server.Publish(want)
	got, err := c.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)
}
