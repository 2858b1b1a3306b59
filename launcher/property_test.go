package launcher

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// situation is one of all situations there are.
func situation(r *rand.Rand) (Desired, Actual) {
	moment := func() time.Time {
		if r.IntN(3) == 0 {
			return time.Time{}
		}
		return noon.Add(time.Duration(r.IntN(120)-60) * time.Second)
	}
	devices := func() (all []Device) {
		for _, alias := range []string{"a", "b", "c"} {
			if r.IntN(3) > 0 {
				all = append(all, Device{Alias: alias, SizeBytes: r.Int64N(3), Link: []string{"", "up", "down"}[r.IntN(3)]})
			}
		}
		return all
	}
	operations := Operations{}
	for _, device := range devices() {
		o := Operation{OperationKinds()[r.IntN(len(operationKinds))], device}
		operations[o.Key()] = Progress{UnderWay: r.IntN(2) == 0, Fault: []error{nil, errBusy}[r.IntN(2)], RetryAt: moment()}
	}
	d := Desired{
		Devices: devices(), Generation: r.Int64N(9), Run: r.IntN(2) == 0, Target: r.IntN(4) == 0, StopBy: moment(),
		Call: []protocol.Call{"", protocol.CallPause, protocol.CallUnpause}[r.IntN(3)],
	}
	return d, Actual{
		Now: noon, RetryAt: moment(), AskedAt: moment(), KilledAt: moment(), PausedAt: moment(), ResumedAt: moment(), Resumes: r.IntN(5),
		Devices: devices(), Operations: operations, Turning: r.IntN(4) == 0, Session: Session{LostAt: moment()},
		Domain: []Domain{Absent, Starting, Running, Paused, Gone}[r.IntN(5)],
		Pause: protocol.Pause{Cause: []protocol.PauseCause{protocol.PausedByUser, protocol.PausedByIOError, protocol.PausedByWatchdog,
			protocol.PausedByMigration, protocol.PausedByPanic, protocol.PausedByUnknown}[r.IntN(6)]},
		Fault: []error{nil, errBusy, errInvalid}[r.IntN(3)],
		Exit:  Exit{Cause: []Cause{PoweredOff, Destroyed, MovedAway, Crashed}[r.IntN(4)]},
		Moving: protocol.Migration{Stage: []protocol.MigrationStage{"", "", protocol.MigrationBegins, protocol.MigrationSends,
			protocol.MigrationSent, protocol.MigrationReceives}[r.IntN(6)]},
	}
}

func TestNoPlanContradictsItself(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50000 {
		d, a := situation(r)
		p := Decide(d, a)
		require.NotEmpty(t, p.State.Phase, "%+v %+v", d, a)
		require.Equal(t, d.Generation, p.State.Generation)
		require.LessOrEqual(t, len(p.Actions), 1, "%+v %+v", d, a)
		require.GreaterOrEqual(t, p.Recheck, time.Duration(0), "%+v %+v", d, a)
		require.Equal(t, p.State.Phase == protocol.Paused, p.State.Pause != nil, "%+v %+v", d, a)
		require.Equal(t, p.State.Phase == protocol.Ended, p.State.End != nil, "%+v %+v", d, a)
		for _, action := range p.Actions {
			switch action.(type) {
			case Start:
				require.True(t, d.Run && !d.Target && !d.stops() && a.Domain == Absent, "%+v %+v", d, a)
			case CancelStart:
				require.True(t, d.stops() && a.Domain == Starting, "%+v %+v", d, a)
			case Suspend:
				require.True(t, d.Call == protocol.CallPause && a.Domain == Running && !d.stops() && !a.Turning && !a.sent(), "%+v %+v", d, a)
			case Resume:
				require.True(t, a.Domain == Paused && !d.stops() && !a.Turning && d.Call != protocol.CallPause, "%+v %+v", d, a)
				require.True(t, d.Call == protocol.CallUnpause || a.Pause.Cause == protocol.PausedByIOError, "%+v %+v", d, a)
				require.False(t, a.sends() || a.sent(), "it may run elsewhere: %+v %+v", d, a)
			case RequestShutdown:
				require.True(t, d.stops() && a.Domain.exists() && !a.sent() && (!a.sends() || !d.StopBy.After(a.Now)), "%+v %+v", d, a)
			case Destroy:
				require.True(t, d.stops() && a.Domain.exists(), "%+v %+v", d, a)
				require.False(t, (a.sends() || a.sent()) && d.StopBy.After(a.Now), "%+v %+v", d, a)
			case AbortMigration:
				require.True(t, d.stops() && a.sends() && a.Domain.exists(), "%+v %+v", d, a)
			case Discard:
				require.True(t, d.stops() && a.Domain == Absent && a.Moving.Stage == protocol.MigrationReceives, "%+v %+v", d, a)
			case Finish:
				require.True(t, a.Domain == Gone || a.Domain == Absent, "%+v %+v", d, a)
				require.False(t, a.sent() && !d.stops(), "its guest may run elsewhere: %+v %+v", d, a)
				require.Equal(t, protocol.Ended, p.State.Phase)
			}
		}
		begun := map[string]bool{}
		for _, o := range p.Operations {
			require.True(t, a.Domain.exists() && !d.stops() && !a.moves(), "%+v %+v", d, a)
			require.False(t, begun[o.Device.Alias], "two at once of a device: %+v %+v", d, a)
			require.False(t, a.Operations.busy(o.Device.Alias), "%+v %+v", d, a)
			require.False(t, a.Operations[o.Key()].RetryAt.After(a.Now), "%+v %+v", d, a)
			require.Contains(t, d.Devices, o.Device)
			require.NotContains(t, a.Devices, o.Device)
			begun[o.Device.Alias] = true
		}
		if p.State.Phase == protocol.Stopping && a.Domain != Starting {
			require.Positive(t, p.Recheck, "a stop is looked at again: %+v %+v", d, a)
		}
	}
}

// TestAStopConverges simulates a guest that reacts or does not, and follows the
// plans until the end.
func TestAStopConverges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		grace := time.Duration(r.IntN(40)) * time.Second
		misses, reacts, slow := r.IntN(4), r.IntN(2) == 0, time.Duration(r.IntN(20))*time.Second
		d, a := Desired{Run: true, StopBy: noon.Add(grace)}, Actual{Now: noon, Domain: Running}
		var off time.Time
		asked := 0
		for step := 0; ; step++ {
			require.Less(t, step, 100)
			p := Decide(d, a)
			if len(p.Actions) > 0 {
				switch p.Actions[0].(type) {
				case RequestShutdown:
					asked, a.AskedAt = asked+1, a.Now
					if asked > misses && reacts && off.IsZero() {
						off = a.Now.Add(slow)
					}
				case Destroy:
					a.KilledAt, a.Domain, a.Exit = a.Now, Gone, Exit{Cause: Destroyed}
					continue
				case Finish:
					require.LessOrEqual(t, a.Now.Sub(noon), grace, "never later than the grace period")
					require.Equal(t, a.KilledAt.IsZero() || grace == 0, p.State.End.Reason == protocol.Shutdown)
					goto next
				}
			}
			if !off.IsZero() && !off.After(a.Now.Add(p.Recheck)) {
				a.Now, a.Domain, a.Exit = off, Gone, Exit{Cause: PoweredOff}
				continue
			}
			a.Now = a.Now.Add(p.Recheck)
		}
	next:
	}
}

// TestAGuestRunsSoonAfterTheCauseOfItsErrorIsGone simulates a disk without space
// that is given some after a while.
func TestAGuestRunsSoonAfterTheCauseOfItsErrorIsGone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		freed := noon.Add(time.Duration(r.IntN(3600)) * time.Second)
		a := Actual{Now: noon, Domain: Paused, Pause: ioError, PausedAt: noon}
		reports := 0
		for phase := protocol.Paused; phase != protocol.Running; {
			p := Decide(Desired{Run: true}, a)
			if p.State.Phase != phase {
				phase, reports = p.State.Phase, reports+1
			}
			for _, action := range p.Actions {
				resume, ok := action.(Resume)
				require.True(t, ok)
				a.ResumedAt, a.Resumes, a.Domain = a.Now, resume.Attempt, Running
				if a.Now.Before(freed) {
					a.Now = a.Now.Add(time.Millisecond)
					a.Domain, a.PausedAt = Paused, a.Now
				}
				p = Decide(Desired{Run: true}, a)
			}
			a.Now = a.Now.Add(p.Recheck)
			require.LessOrEqual(t, a.Now.Sub(freed), resumeLatest+ResumeFirst+Trial)
		}
		require.Equal(t, 1, reports, "attempts in between are not reported")
	}
}
