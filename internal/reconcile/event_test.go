package reconcile

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
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
