package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// at is a guest that runs and has an interface of its own with the n-th address.
func at(n int) protocol.State {
	s := running
	s.Generation = 1
	s.Interfaces = []protocol.Interface{{Name: "docker0", MAC: "02:42:00:00:00:01", Addresses: []string{address(n)}}}
	return s
}

func address(n int) string { return fmt.Sprintf("172.17.%d.%d", n/256, n%256) }

// shown is the address that the status has of the interface.
func shown(v *vmi.VirtualMachineInstance) string {
	for _, i := range v.Status.Interfaces {
		if i.InterfaceName == "docker0" {
			return i.IP
		}
	}
	return ""
}

// guestWithAddresses is a launcher whose guest runs, with the first address.
func guestWithAddresses(t *testing.T) (*world, *control.Server) {
	w := newWorld(t)
	launcher, _ := w.launch(protocol.State{Phase: protocol.Waiting}, func(s *control.Server, _ protocol.Desired) error {
		s.Publish(at(0))
		return nil
	})
	w.handle()
	w.eventually("the first address", func() bool { return shown(w.instance()) == address(0) })
	return w, launcher
}

func TestEachChangeOfAnAddressIsOneWrite(t *testing.T) {
	t.Parallel()
	w, launcher := guestWithAddresses(t)
	before := w.patches()
	for n := range 5 {
		w.elapse(30 * time.Second) // what the launcher takes between two questions
		launcher.Publish(at(n + 1))
		w.eventually("the next address", func() bool { return shown(w.instance()) == address(n+1) })
	}
	for range 3 { // what is known already
		launcher.Publish(at(5))
		w.elapse(30 * time.Second)
	}
	require.Never(t, func() bool { return w.patches() != before+5 }, 200*time.Millisecond, 10*time.Millisecond, "a write for each change")
}

// A guest, or a launcher that was taken over, chooses how often its addresses change.
func TestAttackTheAPIServerByAddressesThatChangeAllTheTime(t *testing.T) {
	t.Parallel()
	w, launcher := guestWithAddresses(t)
	before, began := w.patches(), time.Now()
	const changes = 1000
	for n := range changes {
		launcher.Publish(at(n + 1))
		time.Sleep(time.Millisecond) // each is a state of its own on the socket
	}
	// The budget of the VMI: so many at once, and then one in each interval.
	burst := w.patches() - before
	require.LessOrEqual(t, burst, requestsAtOnce+1+int(time.Since(began)/requestInterval))
	require.Eventually(t, func() bool {
		w.elapse(requestInterval)
		return shown(w.instance()) == address(changes)
	}, 15*time.Second, 50*time.Millisecond, "the last address")
	// What waited for the budget, and what waited for the rate of states.
	require.LessOrEqual(t, w.patches()-before, burst+2)
}
