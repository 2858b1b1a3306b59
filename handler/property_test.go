package handler

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// everything calls f with every combination of what can be observed.
func everything(f func(Observed)) {
	guests := []*Guest{nil}
	for _, p := range []GuestPhase{GuestStarting, GuestRunning, GuestPaused, GuestStopping, GuestEnded} {
		guests = append(guests, &Guest{Phase: p}, &Guest{Phase: p, Emulated: true, Problem: &Finding{"Problem", "text"}},
			&Guest{Phase: p, End: &End{Finding: Finding{"Shutdown", ""}, Succeeded: true}})
	}
	phases := []vmi.Phase{vmi.PhaseUnset, vmi.Pending, vmi.Scheduling, vmi.Scheduled, vmi.Running, vmi.Succeeded, vmi.Failed, vmi.Unknown}
	for _, phase := range phases {
		for _, gone := range []bool{false, true} {
			for _, uid := range []string{pod, "other"} {
				for _, g := range guests {
					for _, made := range []*Plumbing{nil, plumbing} {
						for _, put := range []*Wish{nil, {}, {Stop: true, Grace: 5 * time.Second}} {
							for _, fault := range []*Finding{nil, {"Fault", "text"}} {
								v := machine(phase)
								if gone {
									deleted(v)
								}
								f(Observed{Instance: v, Now: now, Link: &Link{PodUID: uid, Guest: g, Plumbing: made, Put: put, Fault: fault, Since: now.Add(-time.Hour)}})
							}
						}
					}
				}
			}
		}
	}
}

func TestEveryPlanIsSound(t *testing.T) {
	t.Parallel()
	everything(func(o Observed) {
		before := o.Instance.DeepCopy()
		p := Decide(o)
		require.Equal(t, before, o.Instance, "nothing that is observed is changed")
		has := func(a Action) bool { return slices.Contains(p.Actions, a) }
		if has(Disconnect{}) || has(Connect{pod}) {
			require.Nil(t, p.Status, "who cannot ask the launcher says nothing of it: %+v", o)
		}
		if before.Status.Phase != vmi.Scheduled && before.Status.Phase != vmi.Running {
			require.Equal(t, Plan{Actions: []Action{Disconnect{}}}, p, "what is not ours is left alone")
		}
		if o.Link.Guest == nil && p.Status != nil {
			require.Equal(t, before.Status.Phase, p.Status.Phase, "nothing is concluded from silence")
		}
		for _, a := range p.Actions {
			if put, ok := a.(Put); ok {
				require.Equal(t, before.DeletionTimestamp != nil, put.Stop, "a machine is stopped if, and only if, it is deleted")
			}
			require.False(t, before.DeletionTimestamp != nil && a == Action(Plumb{}), "nothing is made for a deleted machine")
		}
	})
}

func TestEveryPlanIsDoneOnce(t *testing.T) {
	t.Parallel()
	everything(func(o Observed) {
		for range 3 { // what a plan does may be the reason of one more
			p := Decide(o)
			o = done(o, p)
		}
		p := Decide(o)
		require.Empty(t, p.Actions, "%+v", o)
		require.Empty(t, p.Events, "%+v", o)
		if p.Status != nil {
			require.Equal(t, &o.Instance.Status, p.Status)
		}
		if o.Link != nil && o.Link.Guest != nil {
			require.NotEqual(t, GuestEnded, o.Link.Guest.Phase, "who has ended was reported and let go")
		}
	})
}

// done is the world after a plan was carried out and nothing else happened.
func done(o Observed, p Plan) Observed {
	for _, a := range p.Actions {
		switch a := a.(type) {
		case Connect:
			o.Link = &Link{PodUID: a.PodUID}
		case Disconnect:
			o.Link = nil
		case Plumb:
			l := *o.Link
			l.Plumbing = plumbing
			o.Link = &l
		case Put:
			l := *o.Link
			l.Put = &a.Wish
			o.Link = &l
		}
	}
	if p.Status != nil {
		o.Instance = o.Instance.DeepCopy()
		o.Instance.Status = *p.Status
	}
	o.Now = o.Now.Add(time.Minute)
	return o
}
