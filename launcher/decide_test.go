package launcher

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

var (
	noon       = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	errInvalid = fmt.Errorf("disk root: %w", vmi.ErrInvalid)
)

func TestDecide(t *testing.T) {
	ago, in := func(d time.Duration) time.Time { return noon.Add(-d) }, func(d time.Duration) time.Time { return noon.Add(d) }
	for name, tt := range map[string]struct {
		seen Observed
		want Plan
	}{
		"nothing is wanted": {Observed{}, Plan{Phase: PhaseWaiting}},
		"a machine that is wanted is started": {Observed{Wanted: true},
			Plan{Phase: PhaseStarting, Actions: []Action{Start{}}}},
		"a failed start is tried again later": {Observed{Wanted: true, Fault: errors.New("busy"), RetryAt: in(2 * time.Second)},
			Plan{Phase: PhaseStarting, Recheck: 2 * time.Second}},
		"a failed start is tried again": {Observed{Wanted: true, Fault: errors.New("busy"), RetryAt: noon},
			Plan{Phase: PhaseStarting, Actions: []Action{Start{}}}},
		"what cannot be made is the end": {Observed{Wanted: true, Fault: errInvalid},
			Plan{Phase: PhaseEnded, Actions: []Action{Finish{ReasonNeverStarted, "disk root: invalid"}}}},
		"a stop before the start cancels": {Observed{Wanted: true, StopBy: in(time.Minute)},
			Plan{Phase: PhaseEnded, Actions: []Action{Finish{ReasonCancelled, "a stop was asked for before the machine was started"}}}},
		"a stop with nothing wanted cancels": {Observed{StopBy: ago(time.Minute)},
			Plan{Phase: PhaseEnded, Actions: []Action{Finish{ReasonCancelled, "a stop was asked for before the machine was started"}}}},
		"a start takes its time":    {Observed{Wanted: true, Domain: Starting}, Plan{Phase: PhaseStarting}},
		"a stop breaks off a start": {Observed{Wanted: true, Domain: Starting, StopBy: in(time.Minute)}, Plan{Phase: PhaseStopping, Actions: []Action{CancelStart{}}}},
		"a guest runs":              {Observed{Wanted: true, Domain: Running}, Plan{Phase: PhaseRunning}},
		"a guest is paused":         {Observed{Wanted: true, Domain: Paused}, Plan{Phase: PhasePaused}},
		"a stop asks the guest": {Observed{Domain: Running, StopBy: in(time.Minute)},
			Plan{Phase: PhaseStopping, Actions: []Action{RequestShutdown{}}, Recheck: AskAgain}},
		"a guest is not asked twice at once": {Observed{Domain: Running, StopBy: in(time.Minute), AskedAt: ago(AskAgain - time.Second)},
			Plan{Phase: PhaseStopping, Recheck: time.Second}},
		"a guest that missed it is asked again": {Observed{Domain: Running, StopBy: in(time.Minute), AskedAt: ago(AskAgain)},
			Plan{Phase: PhaseStopping, Actions: []Action{RequestShutdown{}}, Recheck: AskAgain}},
		"the deadline is looked at in time": {Observed{Domain: Running, StopBy: in(time.Second), AskedAt: ago(time.Second)},
			Plan{Phase: PhaseStopping, Recheck: time.Second}},
		"a guest that is late is switched off": {Observed{Domain: Paused, StopBy: noon, AskedAt: ago(time.Minute)},
			Plan{Phase: PhaseStopping, Actions: []Action{Destroy{}}, Recheck: AskAgain}},
		"a guest without grace is not asked": {Observed{Domain: Running, StopBy: noon},
			Plan{Phase: PhaseStopping, Actions: []Action{Destroy{}}, Recheck: AskAgain}},
		"switching off is given time": {Observed{Domain: Running, StopBy: ago(time.Minute), KilledAt: ago(time.Second)},
			Plan{Phase: PhaseStopping, Recheck: AskAgain - time.Second}},
		"a guest powered off": {Observed{Domain: Gone, Exit: Exit{PoweredOff, "off"}},
			Plan{Phase: PhaseEnded, Actions: []Action{Finish{ReasonShutdown, "off"}}}},
		"a guest powered off just when it was switched off": {Observed{Domain: Gone, KilledAt: noon, Exit: Exit{PoweredOff, "off"}},
			Plan{Phase: PhaseEnded, Actions: []Action{Finish{ReasonShutdown, "off"}}}},
		"a guest without a grace period was switched off": {Observed{Domain: Gone, KilledAt: noon, Exit: Exit{Destroyed, "gone"}},
			Plan{Phase: PhaseEnded, Actions: []Action{Finish{ReasonShutdown, "the guest was switched off, with no time left to power off in"}}}},
		"a guest was switched off for being late": {Observed{Domain: Gone, AskedAt: ago(time.Minute), KilledAt: noon, Exit: Exit{Destroyed, "gone"}},
			Plan{Phase: PhaseEnded, Actions: []Action{Finish{ReasonKilled, "the guest had not powered off when its grace period was over"}}}},
		"QEMU crashed": {Observed{Domain: Gone, StopBy: in(time.Minute), Exit: Exit{Crashed, "signal 11"}},
			Plan{Phase: PhaseEnded, Actions: []Action{Finish{ReasonCrashed, "signal 11"}}}},
		"somebody else destroyed the domain": {Observed{Domain: Gone, Exit: Exit{Destroyed, "gone"}},
			Plan{Phase: PhaseEnded, Actions: []Action{Finish{ReasonCrashed, "gone"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.seen.Now = noon
			require.Equal(t, tt.want, Decide(tt.seen))
		})
	}
}

// situation is one of all situations there are.
func situation(r *rand.Rand) Observed {
	moment := func() time.Time {
		if r.IntN(3) == 0 {
			return time.Time{}
		}
		return noon.Add(time.Duration(r.IntN(120)-60) * time.Second)
	}
	return Observed{
		Now: noon, Wanted: r.IntN(2) == 0, StopBy: moment(), RetryAt: moment(), AskedAt: moment(), KilledAt: moment(),
		Domain: []Domain{Absent, Starting, Running, Paused, Gone}[r.IntN(5)],
		Fault:  []error{nil, errors.New("busy"), errInvalid}[r.IntN(3)],
		Exit:   Exit{Cause: []Cause{PoweredOff, Destroyed, Crashed}[r.IntN(3)]},
	}
}

func TestNoPlanContradictsItself(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		o := situation(r)
		p := Decide(o)
		require.NotEmpty(t, p.Phase, "%+v", o)
		require.LessOrEqual(t, len(p.Actions), 1, "%+v", o)
		require.GreaterOrEqual(t, p.Recheck, time.Duration(0), "%+v", o)
		for _, a := range p.Actions {
			switch a.(type) {
			case Start:
				require.True(t, o.Wanted && o.StopBy.IsZero() && o.Domain == Absent, "%+v", o)
			case RequestShutdown, Destroy:
				require.True(t, !o.StopBy.IsZero() && (o.Domain == Running || o.Domain == Paused), "%+v", o)
			case Finish:
				require.True(t, o.Domain == Gone || o.Domain == Absent, "%+v", o)
				require.Equal(t, PhaseEnded, p.Phase)
			}
		}
		if p.Phase == PhaseStopping && o.Domain != Starting {
			require.Positive(t, p.Recheck, "a stop must be looked after: %+v", o)
		}
	}
}

// TestAStopConverges plays a guest that reacts or does not, and follows the
// plans until the end.
func TestAStopConverges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		grace := time.Duration(r.IntN(40)) * time.Second
		hears, deaf, slow := r.IntN(4), r.IntN(2) == 0, time.Duration(r.IntN(20))*time.Second
		o := Observed{Now: noon, Wanted: true, Domain: Running, StopBy: noon.Add(grace)}
		var off time.Time
		asked := 0
		for step := 0; ; step++ {
			require.Less(t, step, 100)
			p := Decide(o)
			if len(p.Actions) > 0 {
				switch a := p.Actions[0].(type) {
				case RequestShutdown:
					asked, o.AskedAt = asked+1, o.Now
					if asked > hears && !deaf && off.IsZero() {
						off = o.Now.Add(slow)
					}
				case Destroy:
					o.KilledAt, o.Domain, o.Exit = o.Now, Gone, Exit{Cause: Destroyed}
					continue
				case Finish:
					require.LessOrEqual(t, o.Now.Sub(noon), grace, "never later than the grace period")
					require.Equal(t, o.KilledAt.IsZero() || grace == 0, a.Reason == ReasonShutdown)
					goto next
				}
			}
			if !off.IsZero() && !off.After(o.Now.Add(p.Recheck)) {
				o.Now, o.Domain, o.Exit = off, Gone, Exit{Cause: PoweredOff}
				continue
			}
			o.Now = o.Now.Add(p.Recheck)
		}
	next:
	}
}

func TestBackoffGrowsToALimit(t *testing.T) {
	var got []time.Duration
	for n := range 8 {
		got = append(got, Backoff(n))
	}
	s := time.Second
	require.Equal(t, []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}, got)
	require.Equal(t, 30*s, Backoff(1000))
}
