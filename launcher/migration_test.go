package launcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestWhatIsDesiredOfAGuestThatMoves(t *testing.T) {
	t.Parallel()
	begins, sends := protocol.Migration{Stage: protocol.MigrationBegins}, protocol.Migration{Stage: protocol.MigrationSends, Mode: vmi.MigrationPreCopy}
	helped := protocol.Migration{Stage: protocol.MigrationSends, Mode: vmi.MigrationPaused}
	sent, receives := protocol.Migration{Stage: protocol.MigrationSent}, protocol.Migration{Stage: protocol.MigrationReceives}
	byMigration := protocol.Pause{Cause: protocol.PausedByMigration}
	run, stop := Desired{Run: true}, Desired{Run: true, StopBy: in(9 * time.Second)}
	over := Desired{Run: true, StopBy: noon}
	call := func(c protocol.Call) Desired { return Desired{Run: true, Call: c} }
	for _, tt := range []struct {
		name    string
		desired Desired
		actual  Actual
		want    Plan
	}{
		{"a stop before anything is sent", stop, Actual{Domain: Running, Moving: begins}, waits(plan(protocol.Stopping, RequestShutdown{}), askAgain)},
		{"a stop of a guest that is sent", stop, Actual{Domain: Running, Moving: sends}, waits(plan(protocol.Stopping, AbortMigration{}), 9*time.Second)},
		{"a stop of a guest that stays paused by its user while it is sent", stop, Actual{Domain: Paused, Pause: byUser, Moving: sends}, waits(plan(protocol.Stopping, AbortMigration{}), 9*time.Second)},
		{"a guest that is sent when its grace period is over", over, Actual{Domain: Running, Moving: sends}, waits(plan(protocol.Stopping, Destroy{}), askAgain)},
		{"a pause while it is sent", call(protocol.CallPause), Actual{Domain: Running, Moving: sends}, plan(protocol.Running, Suspend{})},
		{"it is paused by its user while it is sent", call(protocol.CallPause), Actual{Domain: Paused, Pause: byMigration, Moving: sends}, pausedBy(byUser)},
		{"it stands still for the last of it", run, Actual{Domain: Paused, Pause: byMigration, Moving: sends}, plan(protocol.Running)},
		{"it is paused to help the migration", run, Actual{Domain: Paused, Pause: byMigration, Moving: helped}, pausedBy(byMigration)},
		{"an I/O error while it is sent", run, Actual{Domain: Paused, Pause: ioError, PausedAt: ago(time.Hour), Moving: sends}, pausedBy(ioError)},
		{"everything is sent", run, Actual{Domain: Paused, Pause: byMigration, Moving: sent}, pausedBy(byMigration)},
		{"everything is sent, and libvirt was started anew", call(protocol.CallUnpause), Actual{Domain: Paused, Pause: byUser, Moving: sent}, pausedBy(byMigration)},
		{"everything is sent, and QEMU has ended here", run, Actual{Domain: Gone, Exit: Exit{Cause: Crashed}, Moving: sent}, pausedBy(byMigration)},
		{"a stop when everything is sent", stop, Actual{Domain: Paused, Pause: byMigration, Moving: sent}, waits(plan(protocol.Stopping), 9*time.Second)},
		{"a stop whose grace period is over then", over, Actual{Domain: Paused, Pause: byMigration, Moving: sent}, waits(plan(protocol.Stopping, Destroy{}), askAgain)},
		{"the same without a domain", over, Actual{Domain: Gone, Exit: Exit{Cause: Crashed, Message: "QEMU was killed"}, Moving: sent}, ends(protocol.Crashed, "QEMU was killed")},
		{"it runs elsewhere", run, Actual{Domain: Gone, Exit: Exit{MovedAway, "it runs in another pod"}}, ends(protocol.MovedAway, "it runs in another pod")},
		{"a QEMU waits for it", Desired{Run: true, Target: true}, Actual{Moving: receives}, plan(protocol.Waiting)},
		{"a stop while a QEMU waits for it", Desired{Run: true, Target: true, StopBy: in(time.Minute)}, Actual{Moving: receives}, waits(plan(protocol.Stopping, Discard{}), askAgain)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.actual.Now = noon
			require.Equal(t, tt.want, Decide(tt.desired, tt.actual))
		})
	}
}

func TestTheDevicesOfAGuestThatMovesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for stage, want := range map[protocol.MigrationStage]int{"": 1, protocol.MigrationBegins: 0, protocol.MigrationSends: 0, protocol.MigrationSent: 0, protocol.MigrationStays: 1, protocol.MigrationArrived: 1} {
		p := Decide(Desired{Run: true, Devices: []Device{{Alias: "a", SizeBytes: 2}}},
			Actual{Now: noon, Domain: Running, Devices: []Device{{Alias: "a", SizeBytes: 1}}, Moving: protocol.Migration{Stage: stage}})
		require.Len(t, p.Operations, want, stage)
	}
}
