package launcher

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

var (
	noon       = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	errInvalid = fmt.Errorf("disk root: %w", vmi.ErrInvalid)
	errBusy    = errors.New("busy")
	ioError    = protocol.Pause{Cause: protocol.PausedByIOError, Volume: "data", Message: "volume data: no space left"}
	byUser     = protocol.Pause{Cause: protocol.PausedByUser}
)

// ends is the plan for the end of a domain whose pod is not ended.
func ends(r protocol.EndReason, message string) Plan {
	return finish(Desired{}, protocol.End{Reason: r, Message: message})
}

// terminated is desired when the pod is ended.
func terminated(by time.Time) Desired { return Desired{Run: true, StopBy: by, Terminated: true} }

func ago(d time.Duration) time.Time { return noon.Add(-d) }
func in(d time.Duration) time.Time  { return noon.Add(d) }

// waits is a plan that decides again.
func waits(p Plan, recheck time.Duration) Plan {
	p.Recheck = recheck
	return p
}

// found is a plan whose state has a finding.
func found(p Plan, reason, message string) Plan {
	p.State.Finding = &vmi.Finding{Reason: reason, Message: message}
	return p
}

// operates is a plan with operations.
func operates(p Plan, all ...Operation) Plan {
	p.Operations = all
	return p
}

func TestDecide(t *testing.T) {
	up := []Device{{Alias: "ua-net_default", Name: "interface default", Link: "up"}}
	down := []Device{{Alias: "ua-net_default", Name: "interface default", Link: "down"}}
	cut := Operation{SetLink, down[0]}
	failed := Operations{}.Begin(cut).End(cut, errBusy, noon)
	run := Desired{Run: true}
	stop := func(by time.Time) Desired { return Desired{Run: true, StopBy: by} }
	call := func(c protocol.Call) Desired { return Desired{Run: true, Call: c} }
	off := Exit{PoweredOff, "off"}
	for name, tt := range map[string]struct {
		desired Desired
		actual  Actual
		want    Plan
	}{
		"nothing is desired":  {Desired{}, Actual{}, plan(protocol.Waiting)},
		"a domain is started": {run, Actual{}, plan(protocol.Starting, Start{})},
		"a start that failed is done again later": {run, Actual{Fault: errBusy, RetryAt: in(2 * time.Second)},
			found(waits(plan(protocol.Starting), 2*time.Second), ReasonStartFailed, "busy")},
		"a start that failed is done again": {run, Actual{Fault: errBusy, RetryAt: noon},
			found(plan(protocol.Starting, Start{}), ReasonStartFailed, "busy")},
		"a finding stays while the start is done again": {run, Actual{Domain: Starting, Fault: errBusy},
			found(plan(protocol.Starting), ReasonStartFailed, "busy")},
		"a state that has not come is the end":   {run, Actual{Fault: &vmi.Refusal{Finding: vmi.Finding{Reason: "StateMissing", Message: "m"}}}, ends(protocol.StateMissing, "m")},
		"a spec that is not possible is the end": {run, Actual{Fault: errInvalid}, ends(protocol.CannotStart, "disk root")},
		"a stop before the start cancels": {stop(in(time.Minute)), Actual{},
			ends(protocol.Cancelled, "the launcher was stopped before the guest ran")},
		"a stop with nothing desired cancels": {Desired{StopBy: ago(time.Minute)}, Actual{},
			ends(protocol.Cancelled, "the launcher was stopped before the guest ran")},
		"a target waits for its guest":       {Desired{Run: true, Target: true}, Actual{}, plan(protocol.Waiting)},
		"a target waits whatever has failed": {Desired{Run: true, Target: true}, Actual{Fault: errInvalid}, plan(protocol.Waiting)},
		"a target that is stopped has run no guest": {Desired{Run: true, Target: true, StopBy: noon}, Actual{},
			ends(protocol.Cancelled, "the launcher was stopped before the guest ran")},
		"a guest that has come to a target runs": {Desired{Run: true, Target: true}, Actual{Domain: Running}, plan(protocol.Running)},
		"a start takes its time":                 {run, Actual{Domain: Starting}, plan(protocol.Starting)},
		"a stop cancels a start":                 {stop(in(time.Minute)), Actual{Domain: Starting}, plan(protocol.Stopping, CancelStart{})},
		"a guest runs":                           {run, Actual{Domain: Running}, plan(protocol.Running)},

		"a stop asks the guest": {stop(in(time.Minute)), Actual{Domain: Running},
			waits(plan(protocol.Stopping, RequestShutdown{}), askAgain)},
		"a guest is not asked twice at once": {stop(in(time.Minute)), Actual{Domain: Running, AskedAt: ago(askAgain - time.Second)},
			waits(plan(protocol.Stopping), time.Second)},
		"a guest that did not react is asked again": {stop(in(time.Minute)), Actual{Domain: Running, AskedAt: ago(askAgain)},
			waits(plan(protocol.Stopping, RequestShutdown{}), askAgain)},
		"the end of the grace period is in time": {stop(in(time.Second)), Actual{Domain: Running, AskedAt: ago(time.Second)},
			waits(plan(protocol.Stopping), time.Second)},
		"a guest that is late is switched off": {stop(noon), Actual{Domain: Running, AskedAt: ago(time.Minute)},
			waits(plan(protocol.Stopping, Destroy{}), askAgain)},
		"a guest without a grace period is not asked": {stop(noon), Actual{Domain: Running},
			waits(plan(protocol.Stopping, Destroy{}), askAgain)},
		"destroying is given time": {stop(ago(time.Minute)), Actual{Domain: Running, KilledAt: ago(time.Second)},
			waits(plan(protocol.Stopping), askAgain-time.Second)},
		"a guest that was paused by its user is switched off at once": {stop(in(time.Minute)), Actual{Domain: Paused, Pause: byUser},
			waits(plan(protocol.Stopping, Destroy{}), askAgain)},
		"a guest that an I/O error paused is switched off at once": {stop(in(time.Minute)), Actual{Domain: Paused, Pause: ioError, AskedAt: ago(time.Second)},
			waits(plan(protocol.Stopping, Destroy{}), askAgain)},
		"a guest that moves has its grace period": {stop(in(time.Minute)), Actual{Domain: Paused, Pause: protocol.Pause{Cause: protocol.PausedByMigration}},
			waits(plan(protocol.Stopping, RequestShutdown{}), askAgain)},

		"a call pauses a guest":               {call(protocol.CallPause), Actual{Domain: Running}, plan(protocol.Running, Suspend{})},
		"a guest is not paused twice at once": {call(protocol.CallPause), Actual{Domain: Running, Turning: true}, plan(protocol.Running)},
		"a guest stays paused":                {call(protocol.CallPause), Actual{Domain: Paused, Pause: byUser}, pausedBy(byUser)},
		"a pause by a call is above an I/O error": {call(protocol.CallPause), Actual{Domain: Paused, Pause: ioError, PausedAt: ago(time.Hour)},
			pausedBy(byUser)},
		"a call unpauses a guest":                 {call(protocol.CallUnpause), Actual{Domain: Paused, Pause: byUser}, pausedBy(byUser, Resume{})},
		"a call unpauses a failing guest at once": {call(protocol.CallUnpause), Actual{Domain: Paused, Pause: ioError, PausedAt: noon}, pausedBy(ioError, Resume{})},
		"a guest is not resumed twice at once":    {call(protocol.CallUnpause), Actual{Domain: Paused, Pause: byUser, Turning: true}, pausedBy(byUser)},

		"a guest paused by its user is not resumed": {run, Actual{Domain: Paused, Pause: byUser, PausedAt: ago(time.Hour)}, pausedBy(byUser)},
		"a guest whose watchdog fired is not resumed": {run, Actual{Domain: Paused, Pause: protocol.Pause{Cause: protocol.PausedByWatchdog}, PausedAt: ago(time.Hour)},
			pausedBy(protocol.Pause{Cause: protocol.PausedByWatchdog})},
		"a QEMU that a signal has stopped stands still": {run, Actual{Domain: Running, Stopped: true}, pausedBy(protocol.Pause{Cause: protocol.PausedBySignal})},
		"a QEMU that a signal has stopped is given its time to end": {stop(in(time.Second)), Actual{Domain: Running, Stopped: true, AskedAt: ago(time.Second)},
			waits(plan(protocol.Stopping), time.Second)},
		"a QEMU that a signal has stopped is killed": {stop(noon), Actual{Domain: Running, Stopped: true}, waits(plan(protocol.Stopping, Destroy{}), askAgain)},
		"a guest paused for an unknown cause is not resumed": {run, Actual{Domain: Paused, Pause: protocol.Pause{Cause: protocol.PausedByUnknown}, PausedAt: ago(time.Hour)},
			pausedBy(protocol.Pause{Cause: protocol.PausedByUnknown})},
		"an I/O error is given time": {run, Actual{Domain: Paused, Pause: ioError, PausedAt: ago(4 * time.Second)},
			waits(pausedBy(ioError), 6*time.Second)},
		"a guest is resumed after an I/O error": {run, Actual{Domain: Paused, Pause: ioError, PausedAt: ago(10 * time.Second)},
			pausedBy(ioError, Resume{Attempt: 1})},
		"a second attempt waits for longer": {run, Actual{Domain: Paused, Pause: ioError, ResumedAt: ago(10 * time.Second), PausedAt: ago(10 * time.Second), Resumes: 1},
			waits(pausedBy(ioError), 10*time.Second)},
		"a second attempt follows": {run, Actual{Domain: Paused, Pause: ioError, ResumedAt: ago(21 * time.Second), PausedAt: ago(20 * time.Second), Resumes: 1},
			pausedBy(ioError, Resume{Attempt: 2})},
		"an attempt that failed itself is given time, too": {run, Actual{Domain: Paused, Pause: ioError, PausedAt: ago(time.Minute), ResumedAt: ago(time.Second), Resumes: 1},
			waits(pausedBy(ioError), 19*time.Second)},
		"an I/O error after a long run is a new one": {run, Actual{Domain: Paused, Pause: ioError, ResumedAt: ago(time.Hour), PausedAt: ago(10 * time.Second), Resumes: 9},
			pausedBy(ioError, Resume{Attempt: 1})},
		"a guest that was resumed is paused until it has run for a while": {run, Actual{Domain: Running, Pause: ioError, ResumedAt: ago(300 * time.Millisecond), Resumes: 1},
			waits(pausedBy(ioError), Trial-300*time.Millisecond)},
		"a guest that was resumed runs": {run, Actual{Domain: Running, Pause: ioError, ResumedAt: ago(Trial), Resumes: 1}, plan(protocol.Running)},

		"a daemon that does not answer is waited for": {run, Actual{Domain: Starting, Session: Session{LostAt: ago(time.Second)}},
			waits(plan(protocol.Starting), sessionDelay-time.Second)},
		"a daemon that has not answered for SessionDelay is a finding": {run, Actual{Domain: Starting, Session: Session{ago(sessionDelay), "exit code 1"}},
			found(plan(protocol.Starting), ReasonLibvirtUnavailable, "the libvirt daemon does not answer: exit code 1")},
		"so is one that ended while the guest runs": {run, Actual{Domain: Running, Session: Session{LostAt: ago(time.Minute)}},
			found(plan(protocol.Running), ReasonLibvirtUnavailable, "the libvirt daemon does not answer")},
		"a failed start comes before a daemon that does not answer": {run, Actual{Fault: errBusy, RetryAt: in(time.Second), Session: Session{LostAt: ago(time.Minute)}},
			found(waits(plan(protocol.Starting), time.Second), ReasonStartFailed, "busy")},
		"a daemon is not needed while nothing is desired": {Desired{}, Actual{Session: Session{LostAt: ago(time.Minute)}}, plan(protocol.Waiting)},
		"a stop has no finding": {stop(in(time.Minute)), Actual{Domain: Running, AskedAt: noon, Session: Session{LostAt: ago(time.Minute)}},
			waits(plan(protocol.Stopping), askAgain)},
		"devices that are desired later are a finding": {
			Desired{Run: true, Devices: []Device{{Alias: "ua-root", Name: "disk root"}, {Alias: "ua-data", Name: "disk data"}}},
			Actual{Domain: Running, Devices: []Device{{Alias: "ua-root", Name: "disk root"}}},
			found(plan(protocol.Running), ReasonDevicesDiffer, "disk data is not attached: the devices of a domain that runs are not changed")},
		"a link that is not as desired is switched": {
			Desired{Run: true, Devices: down}, Actual{Domain: Running, Devices: up}, operates(plan(protocol.Running), cut)},
		"a link of a paused guest too": {
			Desired{Run: true, Devices: down}, Actual{Domain: Paused, Pause: ioError, PausedAt: noon, Devices: up},
			operates(waits(pausedBy(ioError), ResumeFirst), cut)},
		"a link that is being switched is waited for": {
			Desired{Run: true, Devices: down}, Actual{Domain: Running, Devices: up, Operations: Operations{}.Begin(cut)}, plan(protocol.Running)},
		"a link that was not switched is a finding and tried later": {
			Desired{Run: true, Devices: down}, Actual{Domain: Running, Devices: up, Operations: failed},
			found(waits(plan(protocol.Running), time.Second), ReasonSwitchFailed, "set the link of interface default down: busy")},
		"the finding stays while it is tried again": {
			Desired{Run: true, Devices: down}, Actual{Domain: Running, Devices: up, Operations: failed.Begin(cut)},
			found(plan(protocol.Running), ReasonSwitchFailed, "set the link of interface default down: busy")},
		"a link that need not be switched any more is no finding": {
			Desired{Run: true, Devices: up}, Actual{Domain: Running, Devices: up, Operations: failed}, plan(protocol.Running)},
		"a guest that is to power off keeps its link": {
			Desired{Run: true, StopBy: in(time.Minute), Devices: down}, Actual{Domain: Running, AskedAt: noon, Devices: up}, waits(plan(protocol.Stopping), askAgain)},
		"devices of a domain that does not run yet are no finding": {
			Desired{Run: true, Devices: []Device{{Alias: "ua-root"}}}, Actual{Domain: Starting}, plan(protocol.Starting)},

		"a guest powered off":                               {run, Actual{Domain: Gone, Exit: off}, ends(protocol.Shutdown, "off")},
		"a guest powered off just when it was switched off": {stop(noon), Actual{Domain: Gone, KilledAt: noon, Exit: off}, ends(protocol.Shutdown, "off")},
		"a guest without a grace period was switched off": {stop(noon), Actual{Domain: Gone, KilledAt: noon, Exit: Exit{Destroyed, "gone"}},
			ends(protocol.Shutdown, "the guest was switched off, with no time left to power off in")},
		"a guest was switched off for being late": {stop(noon), Actual{Domain: Gone, AskedAt: ago(time.Minute), KilledAt: noon, Exit: Exit{Destroyed, "gone"}},
			ends(protocol.Killed, "the guest had not powered off when its grace period was over")},
		"a paused guest was switched off": {stop(in(time.Minute)), Actual{Domain: Gone, AskedAt: ago(time.Minute), KilledAt: noon, Exit: Exit{Destroyed, "gone"}},
			ends(protocol.Shutdown, "the guest was paused and was switched off")},
		"the guest moved away": {run, Actual{Domain: Gone, Exit: Exit{MovedAway, "moved"}}, ends(protocol.MovedAway, "moved")},
		"the guest moved away while it was asked to power off": {stop(noon), Actual{Domain: Gone, AskedAt: noon, Exit: Exit{MovedAway, "moved"}},
			ends(protocol.MovedAway, "moved")},
		"a guest powered off since its pod ends": {terminated(in(time.Minute)), Actual{Domain: Gone, AskedAt: noon, Exit: off},
			finish(terminated(in(time.Minute)), protocol.End{Reason: protocol.Shutdown, Message: "off"})},
		"QEMU crashed":                          {stop(in(time.Minute)), Actual{Domain: Gone, Exit: Exit{Crashed, "signal 11"}}, ends(protocol.Crashed, "signal 11")},
		"the domain was destroyed from outside": {run, Actual{Domain: Gone, Exit: Exit{Destroyed, "gone"}}, ends(protocol.Crashed, "gone")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.actual.Now, tt.desired.Generation = noon, 7
			tt.want.State.Generation = 7
			require.Equal(t, tt.want, Decide(tt.desired, tt.actual))
		})
	}
}

// fill makes a value another than zero.
func fill(t *testing.T, value reflect.Value) {
	switch {
	case value.Kind() == reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
	case value.Kind() == reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
	case value.Kind() == reflect.Struct:
		for i := range value.NumField() {
			fill(t, value.Field(i))
		}
	case value.Kind() == reflect.Bool:
		value.SetBool(true)
	case value.Kind() == reflect.String:
		value.SetString("x")
	case value.CanInt():
		value.SetInt(7)
	case value.CanUint():
		value.SetUint(7)
	default:
		t.Fatal("fill a value of this kind here: ", value.Type())
	}
}

// A fact that is added to the state is published as it was observed, without a change
// here. What is decided is never observed.
func TestWhatWasObservedIsPublishedAsItIs(t *testing.T) {
	decided := []string{"Generation", "Phase", "Finding", "Pause", "End", "NotBooted"}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[protocol.State]()) {
		var observed protocol.State
		fill(t, reflect.ValueOf(&observed).Elem().FieldByIndex(field.Index))
		require.NotEqual(t, protocol.State{}, observed)
		state := Decide(Desired{Run: true}, Actual{Now: noon, Domain: Running, Observed: observed}).State
		want := observed
		if slices.Contains(decided, field.Name) {
			want = protocol.State{}
		}
		want.Phase = protocol.Running
		require.Equal(t, want, state, field.Name)
	}
}

func TestDelaysGrowToALimit(t *testing.T) {
	var starts, resumes []time.Duration
	for n := range 8 {
		starts, resumes = append(starts, Backoff(n)), append(resumes, resumeBackoff(n))
	}
	s := time.Second
	require.Equal(t, []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}, starts)
	require.Equal(t, []time.Duration{10 * s, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 180 * s, 180 * s}, resumes)
	require.Equal(t, 30*s, Backoff(1000))
}

func TestOnlyAnEndOfThePodIsReportedAsTermination(t *testing.T) {
	for name, tt := range map[string]struct {
		desired Desired
		want    bool
	}{
		"a guest that powers itself off":                  {Desired{Run: true}, false},
		"a guest that its handler stops":                  {Desired{Run: true, StopBy: noon}, false},
		"a guest whose pod is ended":                      {Desired{Run: true, StopBy: noon, Terminated: true}, true},
		"a pod that is ended before anything was desired": {Desired{StopBy: noon, Terminated: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(tt.desired, Actual{Domain: Gone, Exit: Exit{PoweredOff, "off"}})
			require.Equal(t, &protocol.End{Reason: protocol.Shutdown, Message: "off", Terminated: tt.want}, p.State.End)
		})
	}
}
