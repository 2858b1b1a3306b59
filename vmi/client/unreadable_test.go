package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// path is where VMIs are.
const path = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"

// send writes to the server what no client of ours would.
func send(t *testing.T, s *fake.Server, method, path, kind, body string) string {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Less(t, w.Code, 300, w.Body.String())
	return w.Body.String()
}

// store stores a VMI with this spec.
func store(t *testing.T, s *fake.Server, name, spec string) {
	t.Helper()
	send(t, s, http.MethodPost, path, "application/json",
		fmt.Sprintf(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","metadata":{"name":%q,"namespace":"default"},"spec":%s}`, name, spec))
}

const negative = `{"domain":{"cpu":{"cores":-1}}}`

func TestAnObjectThatCannotBeDecodedDoesNotHideTheOthers(t *testing.T) {
	s, c := play(t, vmitest.New())
	store(t, s, "broken", negative)
	store(t, s, "other", `["spec"]`)
	i := c.VirtualMachineInstances("default")

	all, err := i.List(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, vmi.ErrUnreadable)
	require.EqualError(t, err, "decode VirtualMachineInstance default/broken: the stored object cannot be decoded: spec.domain.cpu.cores: -1: must be a whole number from 0 to 4294967295\n"+
		"decode VirtualMachineInstance default/other: the stored object cannot be decoded: spec: a list: must be an object")
	require.Len(t, all.Items, 3)
	require.NotEmpty(t, all.ResourceVersion)
	require.NotNil(t, vmi.Unreadable(&all.Items[0]))
	require.NotNil(t, vmi.Unreadable(&all.Items[1]))
	require.Nil(t, vmi.Unreadable(&all.Items[2]))
	require.Equal(t, vmitest.New().Spec, all.Items[2].Spec)

	v, err := i.Get(t.Context(), "broken", metav1.GetOptions{})
	require.ErrorIs(t, err, vmi.ErrUnreadable)
	require.Equal(t, "broken", v.Name)
	require.NotEmpty(t, v.UID)

	for range mostNamed {
		store(t, s, "more-"+fmt.Sprint(time.Now().UnixNano()), negative)
	}
	_, err = i.List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "and 2 more")
	require.Equal(t, mostNamed, strings.Count(err.Error(), "\n"))
}

// mostNamed is how many objects an error names.
const mostNamed = 10

func TestAWatchGoesOnAfterAnObjectThatCannotBeDecoded(t *testing.T) {
	s, c := play(t)
	w, err := c.VirtualMachineInstances("default").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	store(t, s, "broken", negative)
	store(t, s, "good", `{"domain":{"cpu":{"cores":2}}}`)
	e := <-w.ResultChan()
	require.Equal(t, watch.Added, e.Type)
	require.ErrorContains(t, vmi.Unreadable(e.Object.(*vmi.VirtualMachineInstance)), "spec.domain.cpu.cores")
	e = <-w.ResultChan()
	require.EqualValues(t, 2, e.Object.(*vmi.VirtualMachineInstance).Spec.Domain.CPU.Cores)
}

func TestAnObjectThatCannotBeDecodedIsNotWrittenAsAWhole(t *testing.T) {
	s, c := play(t)
	store(t, s, "broken", negative)
	i := c.VirtualMachineInstances("default")
	v, err := i.Get(t.Context(), "broken", metav1.GetOptions{})
	require.ErrorIs(t, err, vmi.ErrUnreadable)
	before := send(t, s, http.MethodGet, path+"/broken", "", "")

	for name, write := range map[string]func() (*vmi.VirtualMachineInstance, error){
		"create": func() (*vmi.VirtualMachineInstance, error) {
			o := v.DeepCopy()
			o.Name, o.ResourceVersion = "copy", ""
			return i.Create(t.Context(), o, metav1.CreateOptions{})
		},
		"update": func() (*vmi.VirtualMachineInstance, error) { return i.Update(t.Context(), v, metav1.UpdateOptions{}) },
		"update status": func() (*vmi.VirtualMachineInstance, error) {
			return i.UpdateStatus(t.Context(), v, metav1.UpdateOptions{})
		},
	} {
		got, err := write()
		require.ErrorIs(t, err, vmi.ErrUnreadable, name)
		require.ErrorContains(t, err, "use Patch", name)
		require.Nil(t, got, name)
		require.Equal(t, before, send(t, s, http.MethodGet, path+"/broken", "", ""), name)
	}

	changed := v.DeepCopy()
	changed.Status.NodeName = "n1"
	got, err := client.WriteStatus(t.Context(), i, v, changed)
	require.ErrorIs(t, err, vmi.ErrUnreadable, "it was done, but the answer cannot be decoded")
	require.Equal(t, "n1", got.Status.NodeName)
	got, err = i.Patch(t.Context(), "broken", types.MergePatchType, []byte(`{"metadata":{"finalizers":["a.example.com/b"]}}`), metav1.PatchOptions{})
	require.ErrorIs(t, err, vmi.ErrUnreadable)
	require.Equal(t, []string{"a.example.com/b"}, got.Finalizers)
	after := send(t, s, http.MethodGet, path+"/broken", "", "")
	require.Contains(t, after, `"spec":{"domain":{"cpu":{"cores":-1}}}`, "what cannot be decoded stays as it is")
	require.NotContains(t, after, "unreadable")
}

func TestAWaitForAnObjectThatCannotBeDecodedEnds(t *testing.T) {
	s, c := play(t)
	store(t, s, "testvmi", negative)
	i := c.VirtualMachineInstances("default")
	v, err := client.WaitForPhase(t.Context(), i, "testvmi", vmi.PhaseRunning)
	require.EqualError(t, err, "wait for VMI testvmi to be Running: decode VirtualMachineInstance default/testvmi: the stored object cannot be decoded: "+
		"spec.domain.cpu.cores: -1: must be a whole number from 0 to 4294967295: it was last in no phase yet")
	require.NotNil(t, v)
	_, err = client.WaitFor(t.Context(), i, "testvmi", func(*vmi.VirtualMachineInstance) (bool, error) { return true, nil })
	require.ErrorIs(t, err, vmi.ErrUnreadable)

	done := make(chan error, 1)
	go func() { done <- client.WaitForDeletion(t.Context(), i, "testvmi") }()
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, done)
	require.NoError(t, i.Delete(t.Context(), "testvmi", metav1.DeleteOptions{}))
	require.NoError(t, <-done)
}

func TestAnInformerKeepsWhatCannotBeDecoded(t *testing.T) {
	for name, refused := range map[string]string{
		"of a stream of what there is": "none",
		"of a list":                    "sendInitialEvents",
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(vmitest.New())
			store(t, s, "broken", negative)
			cfg := s.Config()
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return faulty{next, func(r *http.Request) error {
					if r.URL.Query().Has(refused) {
						return apierrors.NewBadRequest("no")
					}
					return nil
				}}
			})
			c, err := client.New(cfg)
			require.NoError(t, err)
			i, err := informer.NewFiltered(c.VirtualMachineInstances("default"), informer.Selection{})
			require.NoError(t, err)
			get := func(name string) *vmi.VirtualMachineInstance { return i.Lister().Key("default/" + name) }
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go i.RunWithContext(ctx)
			require.True(t, cache.WaitForCacheSync(ctx.Done(), i.HasSynced))
			require.Len(t, i.GetIndexer().List(), 2)
			require.Equal(t, []*vmi.VirtualMachineInstance{get("broken")}, i.Lister().Unreadable())
			require.NotNil(t, vmi.Unreadable(get("broken")))
			require.Nil(t, vmi.Unreadable(get("testvmi")))

			seen := func(ok func() bool) { t.Helper(); require.Eventually(t, ok, time.Minute, time.Millisecond) }
			store(t, s, "second", `{"domain":5}`)
			seen(func() bool { v := get("second"); return v != nil && vmi.Unreadable(v) != nil })
			s.Expire()
			send(t, s, http.MethodPatch, path+"/broken", string(types.MergePatchType), `{"spec":{"domain":{"cpu":{"cores":3}}}}`)
			seen(func() bool {
				v := get("broken")
				return vmi.Unreadable(v) == nil && v.Spec.Domain.CPU.Cores == 3 && len(i.Lister().Unreadable()) == 1
			})
			send(t, s, http.MethodPatch, path+"/testvmi", string(types.MergePatchType), `{"spec":{"domain":{"memory":{"guest":"1.1e999999999"}}}}`)
			seen(func() bool { return vmi.Unreadable(get("testvmi")) != nil })
			send(t, s, http.MethodDelete, path+"/second", "", "")
			seen(func() bool { return get("second") == nil })
		})
	}
}
