package launcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestAGuestThatNeverWroteAByteIsNamed(t *testing.T) {
	t.Parallel()
	run := Desired{Run: true}
	agent := protocol.State{Agent: &protocol.Agent{}}
	for name, tt := range map[string]struct {
		desired Desired
		actual  Actual
		reason  string
		recheck time.Duration
	}{
		"it is given time":                         {run, Actual{Domain: Running, Output: Output{Since: ago(time.Minute)}}, "", silentDelay - time.Minute},
		"then it is named":                         {run, Actual{Domain: Running, Output: Output{Since: ago(silentDelay)}}, protocol.ReasonNothingWritten, 0},
		"one that wrote is not":                    {run, Actual{Domain: Running, Output: Output{Since: ago(time.Hour), Written: true}}, "", 0},
		"one without a serial console is not":      {run, Actual{Domain: Running}, "", 0},
		"one whose agent answers is not":           {run, Actual{Domain: Running, Output: Output{Since: ago(time.Hour)}, Observed: agent}, "", 0},
		"one that is paused writes nothing":        {run, Actual{Domain: Paused, Output: Output{Since: ago(time.Hour)}}, "", 0},
		"one that stops is not looked at":          {Desired{Run: true, StopBy: in(time.Minute)}, Actual{Domain: Running, Output: Output{Since: ago(time.Hour)}}, "", askAgain},
		"that nothing was read says more":          {run, Actual{Domain: Running, Output: Output{Since: ago(time.Hour)}, Boot: Boot{Began: ago(time.Hour), AskedAt: noon, MeasuredAt: noon}}, protocol.ReasonNothingRead, bootAgain},
		"one that was read and is silent is named": {run, Actual{Domain: Running, Output: Output{Since: ago(time.Hour)}, Boot: Boot{Began: ago(time.Hour), MeasuredAt: noon, Read: BootedBytes}}, protocol.ReasonNothingWritten, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.actual.Now = noon
			p := Decide(tt.desired, tt.actual)
			if tt.reason == "" {
				require.Nil(t, p.State.NotBooted)
			} else {
				require.NotNil(t, p.State.NotBooted)
				require.Equal(t, tt.reason, p.State.NotBooted.Reason)
			}
			require.Equal(t, tt.recheck, p.Recheck)
		})
	}
}
