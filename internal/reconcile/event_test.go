package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	ktesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// events are Events with a clock that stands still.
func events(t *testing.T) (*Events, *fake.Clientset, *bytes.Buffer) {
	t.Helper()
	kube, log := fake.NewClientset(), &bytes.Buffer{}
	e, err := NewEvents(EventsConfig{
		Client: kube.CoreV1(), Component: "virt-handler", Node: "n1", Logger: slog.New(slog.NewTextHandler(log, nil)),
		Now: func() time.Time { return time.Unix(1893456000, 0) },
	})
	require.NoError(t, err)
	return e, kube, log
}

func stored(t *testing.T, kube *fake.Clientset) []corev1.Event {
	t.Helper()
	l, err := kube.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return l.Items
}

// What a controller acts on has events: one of another kind would be dropped, and only logged.
func TestEveryKindThatIsActedOnHasEvents(t *testing.T) {
	e, kube, log := events(t)
	objects := []vmi.Object{vmpool.VirtualMachinePools.New()}
	for _, d := range vmi.Definitions() {
		objects = append(objects, d.New())
	}
	for n, o := range objects {
		o.SetNamespace("ns")
		o.SetName("x")
		o.SetUID(types.UID(fmt.Sprint(n)))
		e.Emit(t.Context(), o, Event{Finding: vmi.Finding{Reason: "Started", Message: "it was started"}})
	}
	require.Len(t, stored(t, kube), len(vmi.Definitions())+1, "%s", log)
	require.Zero(t, e.Dropped())
}

func TestAnEventNamesItsObjectAndItsSource(t *testing.T) {
	e, kube, _ := events(t)
	v := vmitest.New()
	v.ResourceVersion = "7"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	e.Emit(ended, v, Event{Finding: vmi.Finding{Reason: "Started", Message: "The guest was started"}})
	e.Emit(t.Context(), v, Event{Warning: true, Finding: vmi.Finding{Reason: "Crashed", Message: strings.Repeat("é", MaxMessage)}})
	all := stored(t, kube)
	require.Len(t, all, 2, "at the same instant")
	first, second := all[0], all[1]
	require.Equal(t, corev1.ObjectReference{
		APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Namespace: v.Namespace, Name: v.Name, UID: v.UID, ResourceVersion: "7",
	}, first.InvolvedObject)
	require.Equal(t, []string{"Normal", "Started", "The guest was started", "virt-handler", "n1"},
		[]string{first.Type, first.Reason, first.Message, first.Source.Component, first.Source.Host})
	require.Equal(t, "Warning", second.Type)
	require.LessOrEqual(t, len(second.Message), MaxMessage)
	require.True(t, strings.HasSuffix(second.Message, "é…"))
}

func TestAnEventOfALongNameHasALegalName(t *testing.T) {
	e, kube, _ := events(t)
	v := vmitest.New(vmitest.WithName(strings.Repeat("a", 235) + "." + strings.Repeat("b", 17)))
	e.Emit(t.Context(), v, Event{Finding: vmi.Finding{Reason: "Started"}})
	got := stored(t, kube)[0]
	require.Empty(t, validation.IsDNS1123Subdomain(got.Name))
	require.Equal(t, v.Name, got.InvolvedObject.Name)
}

func TestAnObjectCannotFillTheStoreWithEvents(t *testing.T) {
	e, kube, log := events(t)
	for range 2 * eventsAtOnce {
		e.Emit(t.Context(), vmitest.New(), Event{Finding: vmi.Finding{Reason: "Paused"}})
	}
	require.Len(t, stored(t, kube), eventsAtOnce)
	require.Contains(t, log.String(), "too many")
	other := vmitest.New()
	other.UID = "another"
	e.Emit(t.Context(), other, Event{Finding: vmi.Finding{Reason: "Paused"}})
	require.Len(t, stored(t, kube), eventsAtOnce+1)
}

func TestAnEventThatCannotBeWrittenIsLogged(t *testing.T) {
	e, kube, log := events(t)
	kube.PrependReactor("create", "events", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("etcd is full") })
	e.Emit(t.Context(), vmitest.New(), Event{Finding: vmi.Finding{Reason: "Started"}})
	require.Contains(t, log.String(), "etcd is full")
	require.Contains(t, log.String(), "reason=Started")
}

// eventStore is an API server that stores events. Fault is called before each is stored, and
// its error is the answer; lost says that the event is stored nevertheless.
type eventStore struct {
	corev1client.EventInterface
	fault func() (err error, lost bool)
	// poison is the reason of events that cannot be written. Empty: there is none.
	poison string

	mu    sync.Mutex
	all   map[string]*corev1.Event // by name
	order []string                 // the objects and reasons of what was stored
	tries int
}

func (s *eventStore) Events(string) corev1client.EventInterface { return s }

func (s *eventStore) Create(_ context.Context, ev *corev1.Event, _ metav1.CreateOptions) (*corev1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	err, lost := s.fault()
	if s.poison != "" && ev.Reason == s.poison {
		err = apierrors.NewInternalError(errors.New("etcdserver: no space"))
	}
	if err != nil && !lost {
		return nil, err
	}
	if s.all[ev.Name] != nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("events"), ev.Name)
	}
	s.all[ev.Name] = ev
	s.order = append(s.order, ev.InvolvedObject.Name+" "+ev.Reason)
	return ev, err
}

// running are Events that write late ones, until end is called.
func running(t *testing.T, fault func() (err error, lost bool)) (e *Events, s *eventStore, log *bytes.Buffer, end func()) {
	t.Helper()
	s, log = &eventStore{fault: fault, all: map[string]*corev1.Event{}}, &bytes.Buffer{}
	e, err := NewEvents(EventsConfig{Client: s, Component: "virt-handler", Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	end = e.Begin(t.Context())
	synctest.Wait()
	return e, s, log, end
}

// named is a VMI with a UID of its own.
func named(i int) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithName(fmt.Sprint("v", i)))
	v.UID = types.UID(v.Name)
	return v
}

var errAway = errors.New("connection refused")

func TestOfABurstNoEventIsLostAndNoneIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		e, s, _, end := running(t, func() (error, bool) {
			n++
			return [...]error{errAway, errors.New("the answer is lost"), nil}[n%3], n%3 == 1
		})
		const burst = 3000
		var wg sync.WaitGroup
		for i := range burst {
			wg.Go(func() { e.Emit(t.Context(), named(i), Event{Finding: vmi.Finding{Reason: "Created"}}) })
		}
		wg.Wait()
		pass(time.Hour)
		end()
		of := map[types.UID]int{}
		for _, ev := range s.all {
			of[ev.InvolvedObject.UID]++
		}
		require.Len(t, of, burst)
		require.Len(t, s.all, burst, "none is repeated")
		require.Zero(t, e.Dropped())
	})
}

// A tenant makes as many objects, and so events, as it likes.
func TestAttackTheEventsOfANamespaceLeaveRoomForThoseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := errAway
		e, s, log, end := running(t, func() (error, bool) { return err, false })
		const more, others = 5, 3
		for i := range mostLate/2 + more {
			e.Emit(t.Context(), named(i), Event{Finding: vmi.Finding{Reason: "Created"}})
		}
		require.EqualValues(t, more, e.Dropped())
		require.Contains(t, log.String(), "drop event")
		for i := range others {
			other := named(mostLate + i)
			other.Namespace = "other"
			e.Emit(t.Context(), other, Event{Finding: vmi.Finding{Reason: "Created"}})
		}
		s.mu.Lock()
		err = nil
		s.mu.Unlock()
		pass(time.Minute)
		end()
		require.Len(t, s.all, mostLate/2+others)
		require.EqualValues(t, more, e.Dropped())
		require.Empty(t, e.late.of)
		require.Empty(t, e.late.objects)
	})
}

func emit(t *testing.T, e *Events, object int, reasons ...string) {
	t.Helper()
	for _, r := range reasons {
		e.Emit(t.Context(), named(object), Event{Finding: vmi.Finding{Reason: r}})
	}
}

func works() (error, bool) { return nil, false }

// pass lets the time pass, and what is written in it be read.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAnEventThatTheAPIServerCannotWriteHoldsUpNoOtherObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, log, end := running(t, works)
		s.poison = "Poison"
		for i := range 2 * mostFailing { // more than an API server that is away would be asked for
			emit(t, e, i, "Poison", "Next")
		}
		emit(t, e, 100, "One", "Two")
		pass(time.Second)
		require.Equal(t, []string{"v100 One", "v100 Two"}, s.order, "and the others keep their order")
		require.Zero(t, e.Dropped())
		pass(time.Hour)
		require.Zero(t, e.Dropped(), "as long as nothing else was written, the API server may be what fails")
		require.Len(t, s.order, 2)
		tries := s.tries
		for range mostTries {
			emit(t, e, 200, "Other")
			pass(time.Minute)
		}
		require.EqualValues(t, 2*mostFailing, e.Dropped(), "each is dropped and counted")
		require.Contains(t, log.String(), "reason=Poison")
		for i := range 2 * mostFailing {
			require.Contains(t, s.order, fmt.Sprintf("v%d Next", i))
		}
		require.Less(t, s.tries-tries, 100*2*mostFailing)
		tries = s.tries
		pass(time.Hour)
		require.Equal(t, tries, s.tries)
		end()
	})
}

func TestTheEventsOfAnObjectAreWrittenInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _, end := running(t, works)
		s.poison = "One"
		emit(t, e, 1, "One", "Two", "Three")
		emit(t, e, 2, "One")
		pass(time.Second)
		require.Empty(t, s.order)
		s.mu.Lock()
		s.poison = ""
		s.mu.Unlock()
		emit(t, e, 1, "Four")
		pass(time.Minute)
		emit(t, e, 1, "Five")
		end()
		var first []string
		for _, o := range s.order {
			if strings.HasPrefix(o, "v1 ") {
				first = append(first, o)
			}
		}
		require.Equal(t, []string{"v1 One", "v1 Two", "v1 Three", "v1 Four", "v1 Five"}, first)
		require.Len(t, s.order, 6, "none is repeated")
		require.Zero(t, e.Dropped())
	})
}

func TestAnEventThatCannotBeWrittenAtTheEndIsTheOnlyOneThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _, end := running(t, works)
		s.poison = "Poison"
		emit(t, e, 1, "Poison", "Next")
		end()
		require.Equal(t, []string{"v1 Next"}, s.order)
		require.EqualValues(t, 1, e.Dropped())
	})
}

func TestEventsOfATimeWithoutAPIServerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, _, end := running(t, func() (error, bool) { return errAway, false })
		const more = 5
		for i := range mostLate + more {
			v := named(i)
			v.Namespace = v.Name
			e.Emit(t.Context(), v, Event{Finding: vmi.Finding{Reason: "Created"}})
		}
		require.EqualValues(t, more, e.Dropped())
		end()
	})
}

func TestWhatIsLateIsWrittenBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := errAway
		e, s, _, end := running(t, func() (error, bool) { return err, false })
		for i := range 3 {
			e.Emit(t.Context(), named(i), Event{Finding: vmi.Finding{Reason: "Created"}})
		}
		synctest.Wait()
		s.mu.Lock()
		err = nil
		s.mu.Unlock()
		end()
		require.Len(t, s.all, 3)
		require.Zero(t, e.Dropped())
	})
}

func TestWhatIsLateAtTheEndOfTheProcessIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, _, end := running(t, func() (error, bool) { return errAway, false })
		for i := range 3 {
			e.Emit(t.Context(), named(i), Event{Finding: vmi.Finding{Reason: "Created"}})
		}
		end()
		require.EqualValues(t, 3, e.Dropped())
	})
}

func TestAnEventThatIsRefusedIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _, end := running(t, func() (error, bool) {
			return apierrors.NewForbidden(corev1.Resource("events"), "x", errors.New("the namespace is being terminated")), false
		})
		e.Emit(t.Context(), named(1), Event{Finding: vmi.Finding{Reason: "Created"}})
		pass(time.Minute)
		end()
		require.Equal(t, 1, s.tries)
		require.EqualValues(t, 1, e.Dropped())
	})
}
