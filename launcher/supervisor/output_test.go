package supervisor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestTheOutputOfAGuestIsSeenIfItsSerialConsoleIsLogged(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for name, tt := range map[string]struct {
		change func(*vmi.Devices)
		seen   bool
	}{
		"by default":              {func(*vmi.Devices) {}, true},
		"both are on":             {func(d *vmi.Devices) { d.AutoattachSerialConsole, d.LogSerialConsole = new(true), new(true) }, true},
		"there is no console":     {func(d *vmi.Devices) { d.AutoattachSerialConsole = new(false) }, false},
		"the console is not kept": {func(d *vmi.Devices) { d.LogSerialConsole = new(false) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vmitest.New()
			tt.change(&v.Spec.Domain.Devices)
			s := &Supervisor{facts: newFacts()}
			s.facts.desired = &protocol.Desired{Instance: v}
			s.facts.listens(began)
			_, a := s.facts.observe(began)
			require.Equal(t, tt.seen, a.Output.Since.Equal(began))
			require.False(t, a.Output.Written)
			s.wrote()
			_, a = s.facts.observe(began)
			require.True(t, a.Output.Written)
		})
	}
}

func TestAGuestThatIsResumedIsGivenTimeToWriteAnew(t *testing.T) {
	t.Parallel()
	f := newFacts()
	f.desired = &protocol.Desired{Instance: vmitest.New()}
	f.listens(time.Now().Add(-time.Hour))
	f.domain = launcher.Paused
	f.runs()
	_, a := f.observe(time.Now())
	require.Less(t, time.Since(a.Output.Since), time.Minute)
}
