package client_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// play is a server in memory and a client of it.
func play(t *testing.T, objects ...vmi.Object) (*fake.Server, *client.Client) {
	t.Helper()
	s := fake.New(objects...)
	c, err := client.New(s.Config())
	require.NoError(t, err)
	return s, c
}

// setPhase writes the phase, as a controller does.
func setPhase(t *testing.T, i client.VirtualMachineInstances, name string, p vmi.Phase) {
	t.Helper()
	v, err := i.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	changed := v.DeepCopy()
	changed.Status.SetPhase(p, metav1.Now())
	_, err = client.WriteStatus(t.Context(), i, v, changed)
	require.NoError(t, err)
}

// waiting starts the wait for the phase, lets it come to rest and returns how to
// see its end.
func waiting(t *testing.T, ctx context.Context, i client.VirtualMachineInstances, phases ...vmi.Phase) func() (*vmi.VirtualMachineInstance, error) {
	var v *vmi.VirtualMachineInstance
	err := errors.New("the wait has not ended")
	done := make(chan struct{})
	go func() {
		defer close(done)
		v, err = client.WaitForPhase(ctx, i, "testvmi", phases...)
	}()
	synctest.Wait()
	return func() (*vmi.VirtualMachineInstance, error) {
		<-done
		return v, err
	}
}

func TestAPhaseIsWaitedFor(t *testing.T) {
	nothing := func(*testing.T, *fake.Server, client.VirtualMachineInstances) {}
	for name, tt := range map[string]struct {
		before, during func(*testing.T, *fake.Server, client.VirtualMachineInstances)
	}{
		"that comes":                {nothing, nothing},
		"across a watch that ended": {nothing, func(_ *testing.T, s *fake.Server, _ client.VirtualMachineInstances) { s.Disconnect() }},
		"across a version that expired": {nothing, func(t *testing.T, s *fake.Server, i client.VirtualMachineInstances) {
			_, err := i.Create(t.Context(), vmitest.New(vmitest.WithName("other")), metav1.CreateOptions{})
			require.NoError(t, err)
			s.Expire()
		}},
		"of a VMI that does not exist yet": {
			func(t *testing.T, _ *fake.Server, i client.VirtualMachineInstances) {
				require.NoError(t, i.Delete(t.Context(), "testvmi", metav1.DeleteOptions{}))
			},
			func(t *testing.T, _ *fake.Server, i client.VirtualMachineInstances) {
				_, err := i.Create(t.Context(), vmitest.New(), metav1.CreateOptions{})
				require.NoError(t, err)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := play(t, vmitest.New())
				i := c.VirtualMachineInstances("default")
				tt.before(t, s, i)
				end := waiting(t, t.Context(), i, vmi.PhaseRunning)
				tt.during(t, s, i)
				setPhase(t, i, "testvmi", vmi.PhaseScheduling)
				synctest.Wait()
				setPhase(t, i, "testvmi", vmi.PhaseRunning)
				v, err := end()
				require.NoError(t, err)
				require.Equal(t, vmi.PhaseRunning, v.Status.Phase)
			})
		})
	}
}

func TestAPhaseThatIsThereIsNotWaitedFor(t *testing.T) {
	_, c := play(t, vmitest.New(vmitest.WithPhase(vmi.PhaseSucceeded)))
	v, err := client.WaitForPhase(t.Context(), c.VirtualMachineInstances("default"), "testvmi", vmi.PhaseRunning, vmi.PhaseSucceeded)
	require.NoError(t, err)
	require.Equal(t, vmi.PhaseSucceeded, v.Status.Phase)
}

func TestAWaitThatCannotEndWellEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := play(t, vmitest.New(vmitest.WithPhase(vmi.PhaseScheduling)))
		i := c.VirtualMachineInstances("default")
		end := waiting(t, t.Context(), i, vmi.PhaseRunning)
		setPhase(t, i, "testvmi", vmi.PhaseFailed)
		v, err := end()
		require.ErrorIs(t, err, client.ErrEnded)
		require.EqualError(t, err, "wait for VMI testvmi to be Running: the VMI has ended: it was last Failed")
		require.Equal(t, vmi.PhaseFailed, v.Status.Phase)
	})
	synctest.Test(t, func(t *testing.T) {
		_, c := play(t, vmitest.New(vmitest.WithPhase(vmi.PhaseScheduling)))
		i := c.VirtualMachineInstances("default")
		end := waiting(t, t.Context(), i, vmi.PhaseScheduled, vmi.PhaseRunning)
		require.NoError(t, i.Delete(t.Context(), "testvmi", metav1.DeleteOptions{}))
		v, err := end()
		require.ErrorIs(t, err, client.ErrEnded)
		require.EqualError(t, err, "wait for VMI testvmi to be Scheduled or Running: the VMI has ended: it was last Scheduling, and was deleted")
		require.Equal(t, "testvmi", v.Name)
	})
}

func TestAWaitThatTakesTooLongSaysWhatItWaitedFor(t *testing.T) {
	stuck := vmitest.New(vmitest.WithPhase(vmi.PhaseScheduling))
	stuck.Status.SetCondition(vmi.Condition{Type: vmi.ConditionPodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}, metav1.Now())
	for name, tt := range map[string]struct {
		objects []vmi.Object
		want    string
	}{
		"a VMI that fits no node": {[]vmi.Object{stuck},
			"wait for VMI testvmi to be Running: context deadline exceeded: it was last Scheduling (Unschedulable: 0/3 nodes are available)"},
		"a VMI without a phase": {[]vmi.Object{vmitest.New()},
			"wait for VMI testvmi to be Running: context deadline exceeded: it was last in no phase yet"},
		"no VMI": {nil, "wait for VMI testvmi to be Running: context deadline exceeded: it does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := play(t, tt.objects...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				v, err := client.WaitForPhase(ctx, c.VirtualMachineInstances("default"), "testvmi", vmi.PhaseRunning)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.EqualError(t, err, tt.want)
				require.Equal(t, len(tt.objects) == 0, v == nil)
			})
		})
	}
}

func TestADeletionIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := vmitest.NewVM(vmi.RunHalted)
		m.Finalizers = []string{"example.com/a"}
		_, c := play(t, m)
		vms := c.VirtualMachines("default")
		require.NoError(t, vms.Delete(t.Context(), m.Name, metav1.DeleteOptions{}))
		go func() {
			time.Sleep(time.Hour)
			if m, err := vms.Get(t.Context(), m.Name, metav1.GetOptions{}); err == nil {
				m.Finalizers = nil
				_, _ = vms.Update(t.Context(), m, metav1.UpdateOptions{})
			}
		}()
		require.NoError(t, client.WaitForDeletion(t.Context(), vms, m.Name))
		_, err := vms.Get(t.Context(), m.Name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.NoError(t, client.WaitForDeletion(t.Context(), vms, m.Name), "there is none")
	})
}

func TestADeletionIsOfTheObjectThatIsThereNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := play(t, vmitest.New())
		i := c.VirtualMachineInstances("default")
		done := make(chan error, 1)
		go func() { done <- client.WaitForDeletion(t.Context(), i, "testvmi") }()
		synctest.Wait()
		require.Empty(t, done)
		require.NoError(t, i.Delete(t.Context(), "testvmi", metav1.DeleteOptions{}))
		_, err := i.Create(t.Context(), vmitest.New(), metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, <-done)
	})
}

// A predicate that reads a field of an object must not have to ask whether there is
// one.
func TestAWaitForAMissingObjectAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := play(t)
		i := c.VirtualMachineInstances("default")
		ready := func(v *vmi.VirtualMachineInstance) (bool, error) { return v.Status.Phase == vmi.PhaseRunning, nil }
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		v, err := client.WaitFor(short, i, "testvmi", ready)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Nil(t, v)

		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			time.Sleep(time.Minute)
			_, _ = i.Create(t.Context(), vmitest.New(), metav1.CreateOptions{})
			time.Sleep(time.Minute)
			_ = i.Delete(t.Context(), "testvmi", metav1.DeleteOptions{})
			time.Sleep(time.Minute)
			_, _ = i.Create(t.Context(), vmitest.New(), metav1.CreateOptions{})
			setPhase(t, i, "testvmi", vmi.PhaseRunning)
		})
		v, err = client.WaitFor(t.Context(), i, "testvmi", ready)
		require.NoError(t, err)
		require.Equal(t, vmi.PhaseRunning, v.Status.Phase)
	})
}

func TestAWaitEndsByItsOwnError(t *testing.T) {
	_, c := play(t, vmitest.New())
	own := errors.New("own")
	v, err := client.WaitFor(t.Context(), c.VirtualMachineInstances("default"), "testvmi", func(*vmi.VirtualMachineInstance) (bool, error) { return true, own })
	require.Equal(t, own, err)
	require.NotNil(t, v)
}

// faulty fails requests before they reach the server.
type faulty struct {
	next  http.RoundTripper
	fault func(*http.Request) error
}

func (f faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := f.fault(r); err != nil {
		return nil, err
	}
	return f.next.RoundTrip(r)
}

func TestAWaitOutlivesAnAPIServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fake.New(vmitest.New(vmitest.WithPhase(vmi.PhaseRunning))).Config()
		var asked atomic.Int32
		away := errors.New("connection refused")
		begun := time.Now()
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return faulty{next, func(*http.Request) error {
				asked.Add(1)
				if time.Since(begun) < 10*time.Minute {
					return away
				}
				return nil
			}}
		})
		c, err := client.New(cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = client.WaitForPhase(ctx, c.VirtualMachineInstances("default"), "testvmi", vmi.PhaseRunning)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, away)

		v, err := client.WaitForPhase(t.Context(), c.VirtualMachineInstances("default"), "testvmi", vmi.PhaseRunning)
		require.NoError(t, err)
		require.NotNil(t, v)
		require.Less(t, asked.Load(), int32(200), "it asks no more often than it has to")
	})
}

// Between two watches, a VMI may be deleted and another one created of the same
// name: it is not the one that was waited for.
func TestAWaitIsForOneVMI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake.New(vmitest.New(vmitest.WithPhase(vmi.PhaseScheduling)))
		cfg := s.Config()
		var away atomic.Bool
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return faulty{next, func(*http.Request) error {
				if away.Load() {
					return errors.New("connection refused")
				}
				return nil
			}}
		})
		c, err := client.New(cfg)
		require.NoError(t, err)
		other, err := client.New(s.Config())
		require.NoError(t, err)
		i := other.VirtualMachineInstances("default")
		end := waiting(t, t.Context(), c.VirtualMachineInstances("default"), vmi.PhaseRunning)
		away.Store(true)
		s.Disconnect()
		require.NoError(t, i.Delete(t.Context(), "testvmi", metav1.DeleteOptions{}))
		_, err = i.Create(t.Context(), vmitest.New(), metav1.CreateOptions{})
		require.NoError(t, err)
		setPhase(t, i, "testvmi", vmi.PhaseRunning)
		time.Sleep(time.Minute)
		away.Store(false)
		v, err := end()
		require.ErrorIs(t, err, client.ErrEnded)
		require.EqualError(t, err, "wait for VMI testvmi to be Running: the VMI has ended: it was last Scheduling, and was deleted")
		require.Equal(t, vmi.PhaseScheduling, v.Status.Phase)
	})
}

func TestAWaitThatCannotWatchDoesNotListAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fake.New(vmitest.New(vmitest.WithPhase(vmi.PhaseScheduling))).Config()
		var asked atomic.Int32
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return faulty{next, func(r *http.Request) error {
				asked.Add(1)
				if r.URL.Query().Has("watch") {
					return errors.New("connection refused")
				}
				return nil
			}}
		})
		c, err := client.New(cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = client.WaitForPhase(ctx, c.VirtualMachineInstances("default"), "testvmi", vmi.PhaseRunning)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, asked.Load(), int32(100))
	})
}

func TestAWaitEndsWhenItIsForbidden(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		answer(w, apierrors.NewForbidden(vmi.VirtualMachineInstances.Resource().GroupResource(), "", errors.New("no")).Status())
	})
	v, err := client.WaitForPhase(t.Context(), c.VirtualMachineInstances("default"), "testvmi", vmi.PhaseRunning)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Nil(t, v)
}
