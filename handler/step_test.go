package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// at is the state of a launcher for which migration m1 is at the stage.
func at(stage protocol.MigrationStage) *protocol.State {
	s := &protocol.State{Phase: protocol.Running, Movable: true}
	if stage != "" {
		s.Migration = &protocol.Migration{UID: "m1", Stage: stage}
	}
	return s
}

func TestTheNextStepFollowsFromTheStageOfTheLauncher(t *testing.T) {
	t.Parallel()
	const (
		begins, sends, sent, stays = protocol.MigrationBegins, protocol.MigrationSends, protocol.MigrationSent, protocol.MigrationStays
	)
	ended := at(sent)
	ended.Phase = protocol.Ended
	other := at(stays)
	other.Migration.UID = "m0"
	for name, tt := range map[string]struct {
		m    Moving
		want Step
	}{
		"a launcher that does not answer":            {Moving{}, StepWait},
		"a launcher that has ended":                  {Moving{State: ended}, StepDone},
		"it does not answer, and all was sent":       {Moving{Performed: true}, StepFinish},
		"it has ended, and all was sent":             {Moving{State: ended, Performed: true}, StepFinish},
		"it does not answer, and the outcome is":     {Moving{Performed: true, Moved: new(true)}, StepWait},
		"it has ended, and the outcome is known":     {Moving{State: ended, Performed: true, Moved: new(true)}, StepDone},
		"a launcher that knows nothing":              {Moving{State: at("")}, StepBegin},
		"a launcher that knows another migration":    {Moving{State: other}, StepBegin},
		"aborted before it began":                    {Moving{State: at(""), GivenUp: true}, StepDone},
		"aborted while the target was asked":         {Moving{State: at(""), GivenUp: true, Asked: true}, StepDismiss},
		"restarted before anything is sent":          {Moving{State: at(begins)}, StepBegin},
		"the domain is known":                        {Moving{State: at(begins), Begun: true}, StepPrepare},
		"the target waits":                           {Moving{State: at(begins), Begun: true, Prepared: true}, StepPerform},
		"aborted before anything is sent":            {Moving{State: at(begins), Begun: true, GivenUp: true}, StepAbort},
		"restarted while it is sent":                 {Moving{State: at(sends)}, StepPerform},
		"aborted while it is sent":                   {Moving{State: at(sends), GivenUp: true}, StepAbort},
		"sent before the launcher reports it":        {Moving{State: at(sends), Performed: true}, StepFinish},
		"sent":                                       {Moving{State: at(sent), Performed: true}, StepFinish},
		"aborted when it was sent":                   {Moving{State: at(sent), Performed: true, GivenUp: true}, StepFinish},
		"aborted before the launcher reports that":   {Moving{State: at(sends), Performed: true, GivenUp: true}, StepFinish},
		"restarted when it was sent":                 {Moving{State: at(sent)}, StepPerform},
		"restarted, and the outcome is known":        {Moving{State: at(sent), Moved: new(true)}, StepConfirm},
		"it has moved":                               {Moving{State: at(sent), Performed: true, Moved: new(true)}, StepConfirm},
		"it has not moved":                           {Moving{State: at(sent), Performed: true, Moved: new(false)}, StepConfirm},
		"it has not moved, and is held":              {Moving{State: at(sent), Performed: true, Moved: new(false), Held: true}, StepWait},
		"it has moved, and is to be held":            {Moving{State: at(sent), Performed: true, Moved: new(true), Held: true}, StepConfirm},
		"the launcher knows the outcome":             {Moving{State: at(sent), Performed: true, Moved: new(true), Confirmed: true}, StepWait},
		"an outcome before anything is sent is none": {Moving{State: at(begins), Moved: new(false)}, StepBegin},
		"it stays":                          {Moving{State: at(stays), Performed: true, Asked: true}, StepDismiss},
		"it stays, and the target knows":    {Moving{State: at(stays), Asked: true, Dismissed: true}, StepDone},
		"it stays, and no target was asked": {Moving{State: at(stays)}, StepDone},
		"a launcher that is a target":       {Moving{State: at(protocol.MigrationReceives)}, StepDone},
	} {
		tt.m.UID = "m1"
		require.Equal(t, tt.want, Next(tt.m), name)
	}
}

// A guest that may run at the target is resumed or destroyed at the source only when the
// target or virt-controller has said which.
func TestNothingIsConfirmedBeforeTheOutcomeIsKnown(t *testing.T) {
	t.Parallel()
	stages := []protocol.MigrationStage{"", protocol.MigrationBegins, protocol.MigrationSends, protocol.MigrationSent, protocol.MigrationStays,
		protocol.MigrationReceives, protocol.MigrationArrived, protocol.MigrationDiscarded}
	for _, stage := range stages {
		for bits := range 1 << 7 {
			is := func(n int) bool { return bits&(1<<n) != 0 }
			m := Moving{UID: "m1", State: at(stage), Begun: is(0), Prepared: is(1), Performed: is(2), GivenUp: is(3), Asked: is(4), Dismissed: is(5), Confirmed: is(6)}
			step := Next(m)
			require.NotEqual(t, StepConfirm, step, "%+v", m)
			if stage == protocol.MigrationSent || m.Performed && stage == protocol.MigrationSends {
				require.NotContains(t, []Step{StepAbort, StepDismiss, StepBegin, StepPrepare, StepDone}, step, "%+v", m)
			}
			m.Moved = new(true)
			if Next(m) == StepConfirm {
				require.True(t, stage == protocol.MigrationSent || m.Performed, "%+v", m)
			}
		}
	}
}

func TestWhatIsRetried(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{
		protocol.ReasonUnavailable: true, protocol.ReasonBusy: true, protocol.ReasonNotFound: true, protocol.ReasonStale: true,
		protocol.ReasonInvalid: false, protocol.ReasonUnknown: false, protocol.ReasonTooLarge: false, "ContainerDiskChanged": false,
	} {
		require.Equal(t, want, StepPrepare.Retryable(vmi.Finding{Reason: reason}), reason)
	}
	require.False(t, StepBegin.Retryable(vmi.Finding{Reason: protocol.ReasonNotFound}), "the own launcher is no other one later")
}
