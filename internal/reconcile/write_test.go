package reconcile

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAWriterWritesAndKeepsTheAnswer(t *testing.T) {
	v := vmitest.New()
	c, err := client.New(fake.New(v).Config())
	require.NoError(t, err)
	cached, err := c.VirtualMachineInstances(v.Namespace).Get(t.Context(), v.Name, metav1.GetOptions{})
	require.NoError(t, err)
	w := NewWriter(c, vmi.VirtualMachineInstances)
	changed := cached.DeepCopy()
	changed.Status.NodeName = "n1"
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	first, err := w.Status(ended, cached, changed)
	require.NoError(t, err, "a write that has begun is completed")
	require.Equal(t, "n1", first.Status.NodeName)
	require.Same(t, first, w.Latest(Key(v), cached))
	second, err := w.Finalizers(t.Context(), first, []string{vmi.Finalizer})
	require.NoError(t, err)
	require.Equal(t, []string{vmi.Finalizer}, second.Finalizers)
	require.Same(t, second, w.Latest(Key(v), cached))

	kept, err := w.Status(t.Context(), cached, second)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "write status of default/testvmi")
	require.Same(t, cached, kept)
	same, err := w.Status(t.Context(), second, second.DeepCopy())
	require.NoError(t, err)
	require.Same(t, second, same, "nothing is written that is there already")
}

// losing loses the answers to the next writes. Applied says that they are done.
type losing struct {
	http.RoundTripper
	next    int
	applied bool
	before  func()
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || l.next == 0 {
		return l.RoundTripper.RoundTrip(r)
	}
	l.next--
	if l.applied {
		answer, err := l.RoundTripper.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		_ = answer.Body.Close()
	}
	if l.before != nil {
		l.before()
	}
	return nil, io.ErrUnexpectedEOF
}

func TestAWriteWithoutAnAnswerIsDoneOrNot(t *testing.T) {
	for _, tt := range []struct {
		name    string
		lost    int
		applied bool
		// meanwhile is the node that another writer writes before the write is repeated.
		meanwhile string
		want      string // empty: an error
	}{
		{"the answer is lost", 1, true, "", "n1"},
		{"the request is lost", 1, false, "", "n1"},
		{"the request is lost, and another writer is first", 1, false, "n2", ""},
		{"both are lost", 2, true, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := vmitest.New()
			server := fake.New(v)
			other, err := client.New(server.Config())
			require.NoError(t, err)
			cfg := server.Config()
			l := &losing{next: tt.lost, applied: tt.applied}
			cfg.Wrap(func(r http.RoundTripper) http.RoundTripper { l.RoundTripper = r; return l })
			c, err := client.New(cfg)
			require.NoError(t, err)
			cached, err := other.VirtualMachineInstances(v.Namespace).Get(t.Context(), v.Name, metav1.GetOptions{})
			require.NoError(t, err)
			if tt.meanwhile != "" {
				l.before = func() {
					changed := cached.DeepCopy()
					changed.Status.NodeName = tt.meanwhile
					_, err := client.WriteStatus(t.Context(), other.VirtualMachineInstances(v.Namespace), cached, changed)
					require.NoError(t, err)
				}
			}
			changed := cached.DeepCopy()
			changed.Status.NodeName = "n1"
			changed.Status.SetPhase(vmi.PhaseScheduled, metav1.Now())
			w := NewWriter(c, vmi.VirtualMachineInstances)
			got, err := w.Status(t.Context(), cached, changed)
			if tt.want == "" {
				require.Error(t, err)
				require.Same(t, cached, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got.Status.NodeName)
			require.NotEqual(t, cached.ResourceVersion, got.ResourceVersion)
			require.Same(t, got, w.Latest(Key(v), cached))
		})
	}
}

func TestOnlyAWriteThatMayHaveBeenDoneIsDoneOnceMore(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"done", t.Context(), nil, 1},
		{"no answer", t.Context(), io.ErrUnexpectedEOF, 2},
		{"no answer in time", t.Context(), context.DeadlineExceeded, 1},
		{"the API server did not wait", t.Context(), apierrors.NewTimeoutError("x", 1), 1},
		{"refused", t.Context(), apierrors.NewForbidden(schema.GroupResource{}, "x", nil), 1},
		{"an error of a webhook", t.Context(), apierrors.NewInternalError(io.EOF), 1},
		{"nothing listens", t.Context(), refused, 1},
		{"the process ends", ended, io.ErrUnexpectedEOF, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			err := Complete(tt.ctx, func(ctx context.Context) error {
				n++
				require.NoError(t, ctx.Err())
				return tt.err
			})
			require.Equal(t, tt.err, err)
			require.Equal(t, tt.want, n)
		})
	}
}
