package launcher_test

import (
	"fmt"
	"time"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
)

func ExampleDecide() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	d := launcher.Desired{Run: true, StopBy: now.Add(30 * time.Second)}
	p := launcher.Decide(d, launcher.Actual{Now: now, Domain: launcher.Running})
	fmt.Printf("%s %T, again in %s\n", p.State.Phase, p.Actions[0], p.Recheck)

	full := protocol.Pause{Cause: protocol.PausedByIOError, Volume: "data"}
	p = launcher.Decide(launcher.Desired{Run: true}, launcher.Actual{Now: now, Domain: launcher.Paused, Pause: full, PausedAt: now})
	fmt.Printf("%s by %s on %s, again in %s\n", p.State.Phase, p.State.Pause.Cause, p.State.Pause.Volume, p.Recheck)
	// Output:
	// Stopping launcher.RequestShutdown, again in 2s
	// Paused by IOError on data, again in 10s
}
