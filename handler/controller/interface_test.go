package controller

import (
	"fmt"
	"sync"
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

// guestWithAddresses is a launcher whose guest runs, and has the n-th address after say(n).
func guestWithAddresses(t *testing.T) (w *world, say func(n int)) {
	w = newWorld(t)
	var mu sync.Mutex
	var last, generation = 0, int64(0)
	publish := func(s *control.Server) {
		state := at(last)
		state.Generation = generation
		s.Publish(state)
	}
	launcher, _ := w.launch(protocol.State{Phase: protocol.Waiting}, func(s *control.Server, d protocol.Desired) error {
		mu.Lock()
		defer mu.Unlock()
		generation = d.Generation
		publish(s)
		return nil
	})
	w.handle()
	w.eventually("the first address", func() bool { return shown(w.instance()) == address(0) })
	return w, func(n int) {
		mu.Lock()
		defer mu.Unlock()
		last = n
		publish(launcher)
	}
}

func TestEachChangeOfAnAddressIsOneWrite(t *testing.T) {
	t.Parallel()
	w, say := guestWithAddresses(t)
	before := w.written()
	for n := range 5 {
		w.elapse(30 * time.Second) // what the launcher takes between two questions
		say(n + 1)
		w.eventually("the next address", func() bool { return shown(w.instance()) == address(n+1) })
	}
	for range 3 { // what is known already
		say(5)
		w.elapse(30 * time.Second)
	}
	require.Never(t, func() bool { return w.written() != before+5 }, 200*time.Millisecond, 10*time.Millisecond, "a write for each change")
}

// A guest, or a launcher that was taken over, chooses how often its addresses change.
func TestAttackTheAPIServerByAddressesThatChangeAllTheTime(t *testing.T) {
	t.Parallel()
	w, say := guestWithAddresses(t)
	before, began := w.written(), time.Now()
	const changes = 1000
	for n := range changes {
		say(n + 1)
		time.Sleep(time.Millisecond) // each is a state of its own on the socket
	}
	// The budget of the VMI: so many at once, and then one in each interval.
	burst := w.written() - before
	require.LessOrEqual(t, burst, requestsAtOnce+1+int(time.Since(began)/requestInterval))
	require.Eventually(t, func() bool {
		w.elapse(requestInterval)
		return shown(w.instance()) == address(changes)
	}, time.Minute, 50*time.Millisecond, "the last address")
	// The states that a session takes bound it too, whatever the budget is.
	require.LessOrEqual(t, w.written()-before, statesAtOnce+1+int(time.Since(began).Seconds()*statesPerSecond))
}
