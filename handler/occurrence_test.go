package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func reported(reboots, panics *vmi.GuestOccurrences) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Status.GuestReboots, v.Status.GuestPanics = reboots, panics }
}

func TestWhatAGuestDidIsCounted(t *testing.T) {
	t.Parallel()
	counted := func(n int64, ago time.Duration) *vmi.GuestOccurrences {
		return &vmi.GuestOccurrences{Count: n, LastTimestamp: metav1.NewTime(now.Add(-ago))}
	}
	rebooted := func(n string) Event {
		return normal(EventRebooted, "The guest rebooted; reboots since it was started: "+n)
	}
	panicked := warning(EventPanicked, "The kernel of the guest panicked; panics since it was started: 1")
	over := &protocol.State{Phase: protocol.Ended, Reboots: 7, Panics: 1, End: &protocol.End{Reason: protocol.Crashed, Message: "off"}}
	running := func(reboots, panics int64) *protocol.State {
		return &protocol.State{Phase: protocol.Running, Reboots: reboots, Panics: panics}
	}
	for name, tt := range map[string]struct {
		before  *vmi.GuestOccurrences
		state   *protocol.State
		reboots *vmi.GuestOccurrences
		panics  *vmi.GuestOccurrences
		events  []Event
		recheck time.Duration
	}{
		"a launcher of the release before counts nothing":             {nil, running(0, 0), nil, nil, nil, 0},
		"the first reboot is reported at once":                        {nil, running(1, 0), counted(1, 0), nil, []Event{rebooted("1")}, 0},
		"what was reported is not reported again":                     {counted(1, time.Second), running(1, 0), counted(1, time.Second), nil, nil, 0},
		"a launcher that reports less is not believed":                {counted(2, time.Hour), running(1, 0), counted(2, time.Hour), nil, nil, 0},
		"a handler that was away reports what it missed":              {counted(1, time.Hour), running(4, 0), counted(4, 0), nil, []Event{rebooted("4")}, 0},
		"the next reboots are reported together":                      {counted(1, 4*time.Second), running(3, 0), counted(1, 4*time.Second), nil, nil, 6 * time.Second},
		"and then at once":                                            {counted(1, 10*time.Second), running(3, 0), counted(3, 0), nil, []Event{rebooted("3")}, 0},
		"a guest that reboots again and again is reported less often": {counted(100, 60*time.Second), running(107, 0), counted(100, 60*time.Second), nil, nil, 40 * time.Second},
		"but every five minutes":                                      {counted(1<<31, 5*time.Minute-time.Second), running(1<<31+9, 0), counted(1<<31, 5*time.Minute-time.Second), nil, nil, time.Second},
		"a clock that went back holds up nothing for long":            {counted(1, -time.Hour), running(3, 0), counted(1, -time.Hour), nil, nil, 5 * time.Minute},
		"a panic does not wait for reboots":                           {counted(1, time.Second), running(1, 1), counted(1, time.Second), counted(1, 0), []Event{panicked}, 0},
		"the end waits for nothing": {counted(1, time.Second), over, counted(7, 0), counted(1, 0),
			[]Event{rebooted("7"), panicked, warning(EventStopped, "off")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseRunning, reported(tt.before, nil))
			p := Decide(observed(v, session(v, tt.state)))
			require.Equal(t, tt.reboots, p.Status.GuestReboots)
			require.Equal(t, tt.panics, p.Status.GuestPanics)
			require.Equal(t, tt.events, p.Events)
			require.Equal(t, tt.recheck, p.Recheck)
		})
	}
}

func TestAGuestThatRebootsAgainAndAgainHasACondition(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		every time.Duration
		times int64
		loops bool
	}{
		"a guest that cannot boot":          {5 * time.Second, 20, true},
		"a guest that takes a minute to":    {time.Minute, 8, true},
		"an installation":                   {30 * time.Second, 3, false},
		"a guest that reboots once an hour": {time.Hour, 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseRunning)
			v.Status = *Decide(observed(v, session(v, state(protocol.Running)))).Status
			at, warnings := now, 0
			look := func(reboots int64) Plan {
				o := observed(v, session(v, &protocol.State{Phase: protocol.Running, Reboots: reboots}))
				o.Now = at
				p := Decide(o)
				for _, e := range p.Events {
					if e.Reason == EventRebootLoop {
						require.True(t, e.Warning)
						warnings++
					}
				}
				v.Status = *p.Status
				return p
			}
			for n := range tt.times {
				at = at.Add(tt.every)
				look(n + 1)
			}
			for range 10 { // what was held back
				at = at.Add(20 * time.Second)
				look(tt.times)
			}
			c := v.Status.Condition(vmi.ConditionGuestRebootLoop)
			require.Equal(t, tt.loops, c != nil)
			if !tt.loops {
				require.Zero(t, warnings)
				return
			}
			require.Equal(t, 1, warnings)
			require.Equal(t, ReasonRebootsAgain, c.Reason)
			require.Equal(t, corev1.ConditionTrue, v.Status.Condition(vmi.ConditionReady).Status, "it runs")
			at = at.Add(look(tt.times).Recheck)
			at = at.Add(loopOver)
			look(tt.times)
			require.Nil(t, v.Status.Condition(vmi.ConditionGuestRebootLoop), "it has not rebooted since")
		})
	}
}

func TestALoopOfRebootsCostsFewWrites(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	v.Status = *Decide(observed(v, session(v, state(protocol.Running)))).Status
	writes := 0
	for second := range int64(3600) {
		o := observed(v, session(v, &protocol.State{Phase: protocol.Running, Reboots: second}))
		o.Now = now.Add(time.Duration(second) * time.Second)
		p := Decide(o)
		if len(p.Events) > 0 {
			writes++
		}
		v.Status = *p.Status
	}
	require.Less(t, writes, 24, "an object has 25 events at once")
	require.Greater(t, writes, 12)
}

func TestAGuestThatDidNotBootHasACondition(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	s := state(protocol.Running)
	s.NotBooted = &vmi.Finding{Reason: protocol.ReasonNothingRead, Message: "nothing was read"}
	p := Decide(observed(v, session(v, s)))
	c := p.Status.Condition(vmi.ConditionGuestNotBooted)
	require.NotNil(t, c)
	require.Equal(t, corev1.ConditionTrue, c.Status)
	require.Equal(t, *s.NotBooted, vmi.Finding{Reason: c.Reason, Message: c.Message})
	require.Equal(t, vmi.PhaseRunning, p.Status.Phase)
	require.Equal(t, corev1.ConditionTrue, p.Status.Condition(vmi.ConditionReady).Status, "it is a hint")
	require.Equal(t, []Event{warning(EventNotBooted, "nothing was read")}, p.Events)

	v.Status = *p.Status
	require.Equal(t, Plan{Status: p.Status}, Decide(observed(v, session(v, s))))
	booted := Decide(observed(v, session(v, state(protocol.Running))))
	require.Nil(t, booted.Status.Condition(vmi.ConditionGuestNotBooted))
	require.Empty(t, booted.Events)
	ended := Decide(observed(v, session(v, &protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown, Message: "off"}})))
	require.Nil(t, ended.Status.Condition(vmi.ConditionGuestNotBooted))
}

func TestASilentGuestIsReadyAndNotSilentlySo(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	s := state(protocol.Running)
	s.NotBooted = &vmi.Finding{Reason: protocol.ReasonNothingWritten, Message: "nothing was written"}
	p := Decide(observed(v, session(v, s)))
	c := p.Status.Condition(vmi.ConditionGuestNotBooted)
	require.NotNil(t, c)
	require.Equal(t, corev1.ConditionUnknown, c.Status, "it may use another console")
	require.Equal(t, *s.NotBooted, vmi.Finding{Reason: c.Reason, Message: c.Message})
	require.Equal(t, []Event{normal(EventNotBooted, "nothing was written")}, p.Events)
	ready := p.Status.Condition(vmi.ConditionReady)
	require.Equal(t, corev1.ConditionTrue, ready.Status)
	require.Equal(t, "nothing was written", ready.Message, "kubectl get shows it")
	require.Empty(t, p.Status.Reason)

	v.Status = *p.Status
	require.Equal(t, Plan{Status: p.Status}, Decide(observed(v, session(v, s))))
	wrote := Decide(observed(v, session(v, state(protocol.Running))))
	require.Nil(t, wrote.Status.Condition(vmi.ConditionGuestNotBooted))
	require.Empty(t, wrote.Status.Condition(vmi.ConditionReady).Message)
}
