package launcher_test

import (
	"fmt"
	"time"

	"github.com/podvisor/podvisor/launcher"
)

func ExampleDecide() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	o := launcher.Observed{Now: now, Wanted: true, Domain: launcher.Running, StopBy: now.Add(30 * time.Second)}
	p := launcher.Decide(o)
	fmt.Printf("%s %T, again in %s\n", p.Phase, p.Actions[0], p.Recheck)

	o.Now = o.StopBy
	p = launcher.Decide(o)
	fmt.Printf("%s %T\n", p.Phase, p.Actions[0])
	// Output:
	// Stopping launcher.RequestShutdown, again in 2s
	// Stopping launcher.Destroy
}
