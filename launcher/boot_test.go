package launcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestAGuestThatReadsNothingHasNotBooted(t *testing.T) {
	t.Parallel()
	run := Desired{Run: true}
	const said = "No bootable device."
	measure := func(p Plan) Plan {
		p.Actions = append(p.Actions, MeasureReads{})
		return waits(p, bootAgain)
	}
	hint := func(p Plan, failure string) Plan {
		p.State.NotBooted = notBooted(failure)
		return p
	}
	for name, tt := range map[string]struct {
		desired Desired
		domain  Domain
		boot    Boot
		want    Plan
	}{
		"a guest is given time":      {run, Running, Boot{Began: ago(10 * time.Second)}, waits(plan(protocol.Running), BootDelay-10*time.Second)},
		"then its reads are counted": {run, Running, Boot{Began: ago(BootDelay)}, measure(plan(protocol.Running))},
		"an answer is waited for":    {run, Running, Boot{Began: ago(time.Minute), AskedAt: ago(time.Second)}, waits(plan(protocol.Running), bootAgain-time.Second)},
		"one that read nothing has not booted": {run, Running, Boot{Began: ago(time.Minute), AskedAt: ago(time.Second), MeasuredAt: ago(time.Second), Read: 512},
			hint(waits(plan(protocol.Running), bootAgain-time.Second), "")},
		"and its reads are counted again": {run, Running, Boot{Began: ago(time.Minute), AskedAt: ago(bootAgain), MeasuredAt: ago(bootAgain), Read: 512},
			hint(measure(plan(protocol.Running)), "")},
		"one that has booted is left alone": {run, Running, Boot{Began: ago(time.Hour), MeasuredAt: ago(time.Minute), Read: BootedBytes}, plan(protocol.Running)},
		"a count from before counts for nothing": {run, Running, Boot{Began: ago(time.Second), AskedAt: ago(time.Minute), MeasuredAt: ago(time.Minute), Read: 512},
			waits(plan(protocol.Running), BootDelay-time.Second)},
		"what a firmware says is checked at once": {run, Running, Boot{Began: ago(time.Second), Failure: said}, measure(plan(protocol.Running))},
		"a firmware that found nothing has not booted": {run, Running, Boot{Began: ago(2 * time.Second), Failure: said, AskedAt: ago(time.Second), MeasuredAt: ago(time.Second)},
			hint(waits(plan(protocol.Running), bootAgain-time.Second), said)},
		"a guest that only says so has booted": {run, Running, Boot{Began: ago(time.Second), Failure: said, MeasuredAt: noon, Read: 1 << 30}, plan(protocol.Running)},
		"a paused guest reads nothing":         {run, Paused, Boot{Began: ago(time.Hour)}, pausedBy(protocol.Pause{})},
		"what is known stays while it is paused": {run, Paused, Boot{Began: ago(time.Hour), MeasuredAt: ago(time.Minute)},
			hint(pausedBy(protocol.Pause{}), "")},
		"a guest that stops is not looked at": {Desired{Run: true, StopBy: in(time.Minute)}, Running, Boot{Began: ago(time.Hour), MeasuredAt: noon},
			waits(plan(protocol.Stopping, RequestShutdown{}), askAgain)},
		"a guest that did not start is not looked at": {run, Starting, Boot{}, plan(protocol.Starting)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, Decide(tt.desired, Actual{Now: noon, Domain: tt.domain, Boot: tt.boot}))
		})
	}
}
