package client_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// rack is an object of a kind that package vmi does not know: of another group,
// in no namespace, with a scale, and with a list that is merged.
type rack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              rackSpec   `json:"spec"`
	Status            rackStatus `json:"status,omitempty"`
}

type rackSpec struct {
	Room  string     `json:"room,omitempty"`
	Count int32      `json:"count,omitempty"`
	Units []rackUnit `json:"units,omitempty"`
}

type rackUnit struct {
	Name   string `json:"name"`
	Height int    `json:"height,omitempty"`
}

type rackStatus struct {
	Count int32 `json:"count,omitempty"`
}

type rackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []rack `json:"items"`
}

// copied is a deep copy by way of JSON.
func copied[T any](from *T) *T {
	to := new(T)
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

func (r *rack) DeepCopyObject() runtime.Object     { return copied(r) }
func (l *rackList) DeepCopyObject() runtime.Object { return copied(l) }

var racks = vmi.Define[rack, rackList](vmi.Definition{
	GroupVersionKind: schema.GroupVersionKind{Group: "hardware.example.com", Version: "v1beta2", Kind: "Rack"},
	Plural:           "racks",
	ClusterScoped:    true,
	Status:           true,
	Scale:            &vmi.ScaleFields{Spec: "spec.count", Status: "status.count"},
	Selectable:       []string{"spec.room"},
	ListKeys:         map[string][]string{"spec.units": {"name"}},
})

func newRack(name, room string, units ...rackUnit) *rack {
	return &rack{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: rackSpec{Room: room, Units: units}}
}

// rackApplyConfiguration is what is to be applied to a rack, in the form that generators
// give it.
type rackApplyConfiguration struct {
	applymetav1.TypeMetaApplyConfiguration    `json:",inline"`
	*applymetav1.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Spec                                      *rackSpec `json:"spec,omitempty"`
}

func (rackApplyConfiguration) IsApplyConfiguration()    {}
func (r rackApplyConfiguration) GetKind() *string       { return r.Kind }
func (r rackApplyConfiguration) GetAPIVersion() *string { return r.APIVersion }
func (r rackApplyConfiguration) GetName() *string       { return r.Name }

func applyRack(name, room string, units ...rackUnit) rackApplyConfiguration {
	return rackApplyConfiguration{
		*applymetav1.TypeMeta().WithKind("Rack").WithAPIVersion("hardware.example.com/v1beta2"), applymetav1.ObjectMeta().WithName(name),
		&rackSpec{Room: room, Units: units},
	}
}

// playRacks is a server in memory with the racks, and a client of it that notes
// the paths that it asks for.
func playRacks(t *testing.T, held ...vmi.Object) (*client.Client, *[]string) {
	t.Helper()
	cfg := fake.Serving([]vmi.Definition{racks.Definition}, held...).Config()
	var mu sync.Mutex
	var paths []string
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return faulty{next, func(r *http.Request) error {
			mu.Lock()
			defer mu.Unlock()
			paths = append(paths, r.Method+" "+r.URL.Path)
			return nil
		}}
	})
	c, err := client.New(cfg)
	require.NoError(t, err)
	return c, &paths
}

func TestAKindOfAnotherGroupIsReadAndWritten(t *testing.T) {
	c, paths := playRacks(t)
	ctx, r := t.Context(), client.Of(c, racks, "a namespace that does not matter")
	a, err := r.Create(ctx, newRack("a", "north"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Generation)
	a.Spec.Room = "south"
	a, err = r.Update(ctx, a, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "south", a.Spec.Room)
	full := copied(a)
	full.Status.Count = 3
	a, err = client.WriteStatus(ctx, r, a, full)
	require.NoError(t, err)
	require.EqualValues(t, 3, a.Status.Count)
	require.EqualValues(t, 2, a.Generation, "a write of the status is not counted")
	got, err := r.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, a, got)
	_, err = r.Create(ctx, newRack("b", "north"), metav1.CreateOptions{})
	require.NoError(t, err)
	north, err := r.List(ctx, metav1.ListOptions{FieldSelector: "spec.room=north"})
	require.NoError(t, err)
	require.Len(t, north.Items, 1)
	require.Equal(t, "b", north.Items[0].Name)
	require.NoError(t, r.Delete(ctx, "a", metav1.DeleteOptions{}))
	_, err = r.Get(ctx, "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	const at = "/apis/hardware.example.com/v1beta2/racks"
	require.Equal(t, []string{
		"POST " + at, "PUT " + at + "/a", "PATCH " + at + "/a/status", "GET " + at + "/a", "POST " + at, "GET " + at, "DELETE " + at + "/a", "GET " + at + "/a",
	}, *paths)
}

func TestTheListsOfAnotherKindAreMergedByItsDefinition(t *testing.T) {
	c, _ := playRacks(t)
	r := client.Of(c, racks, "")
	_, err := r.Apply(t.Context(), applyRack("a", "north", rackUnit{"x", 1}, rackUnit{"y", 2}), metav1.ApplyOptions{FieldManager: "first"})
	require.NoError(t, err)
	a, err := r.Apply(t.Context(), applyRack("a", "", rackUnit{"z", 3}), metav1.ApplyOptions{FieldManager: "second"})
	require.NoError(t, err)
	require.Equal(t, []rackUnit{{"x", 1}, {"y", 2}, {"z", 3}}, a.Spec.Units)
	require.Equal(t, "north", a.Spec.Room)
}

func TestAnotherKindIsScaled(t *testing.T) {
	c, _ := playRacks(t, &rack{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: rackSpec{Count: 2}, Status: rackStatus{Count: 1}})
	r := client.Of(c, racks, "")
	s, err := r.GetScale(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []int32{2, 1}, []int32{s.Spec.Replicas, s.Status.Replicas})
	s.Spec.Replicas = 5
	_, err = r.UpdateScale(t.Context(), "a", s, metav1.UpdateOptions{})
	require.NoError(t, err)
	a, err := r.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 5, a.Spec.Count)

	_, err = c.KubeVirts("default").GetScale(t.Context(), "a", metav1.GetOptions{})
	require.ErrorContains(t, err, "does not serve GET /apis/kubevirt.io/v1/namespaces/default/kubevirts/a/scale")
	require.False(t, apierrors.IsNotFound(err), "%v", err)
}

func TestAnotherKindIsCachedAndWaitedFor(t *testing.T) {
	c, _ := playRacks(t, newRack("a", "north"))
	r := client.Of(c, racks, "")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	i, err := informer.NewFiltered(r, informer.Selection{})
	require.NoError(t, err)
	go i.RunWithContext(ctx)
	require.True(t, cache.WaitForCacheSync(ctx.Done(), i.HasSynced))
	require.Equal(t, "north", i.Lister().Key("a").Spec.Room)
	w, err := r.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=b"})
	require.NoError(t, err)
	defer w.Stop()
	_, err = r.Create(ctx, newRack("b", "south"), metav1.CreateOptions{})
	require.NoError(t, err)
	e := <-w.ResultChan()
	require.Equal(t, watch.Added, e.Type)
	require.Equal(t, "south", e.Object.(*rack).Spec.Room)
	require.Eventually(t, func() bool { return i.Lister().Key("b") != nil }, time.Minute, time.Millisecond)
	found, err := client.WaitFor(ctx, r, "b", func(b *rack) (bool, error) { return b.Spec.Room == "south", nil })
	require.NoError(t, err)
	require.Equal(t, "b", found.Name)
	require.NoError(t, client.WaitForDeletion(ctx, r, "c"))
}

func TestAKindOfTheCoreGroupHasItsOwnPath(t *testing.T) {
	var path string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		answer(w, &corev1.ConfigMap{Data: map[string]string{"a": "b"}})
	})
	maps := vmi.Define[corev1.ConfigMap, corev1.ConfigMapList](vmi.Definition{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: "configmaps",
	})
	m, err := client.Of(c, maps, "default").Get(t.Context(), "x", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "/api/v1/namespaces/default/configmaps/x", path)
	require.Equal(t, map[string]string{"a": "b"}, m.Data)
	_, err = client.WriteStatus(t.Context(), client.Of(c, maps, "default"), m, m)
	require.EqualError(t, err, "write the status of /: *v1.ConfigMap has no field Status")
}

func TestAnEmptyNameNamesNothing(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Error(r.Method + " " + r.URL.Path) })
	i := c.VirtualMachineInstances("default")
	_, err := i.Get(t.Context(), "", metav1.GetOptions{})
	require.ErrorContains(t, err, "resource name may not be empty")
	require.ErrorContains(t, i.Delete(t.Context(), "", metav1.DeleteOptions{}), "resource name may not be empty")
	_, err = i.Update(t.Context(), &vmi.VirtualMachineInstance{}, metav1.UpdateOptions{})
	require.ErrorContains(t, err, "resource name may not be empty")
}

func TestAllKindsShareOneLimitOfRequests(t *testing.T) {
	cfg := fake.Serving([]vmi.Definition{racks.Definition}, vmitest.New(), newRack("a", "")).Config()
	cfg.QPS, cfg.Burst = 0.001, 2
	c, err := client.New(cfg)
	require.NoError(t, err)
	_, err = c.VirtualMachineInstances("default").Get(t.Context(), "testvmi", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = client.Of(c, racks, "").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = c.VirtualMachineInstances("default").Get(ctx, "testvmi", metav1.GetOptions{})
	require.ErrorContains(t, err, "rate limiter")
}

func TestAClientOfNothingIsNotMade(t *testing.T) {
	cfg := fake.New().Config()
	cfg.Host = "http://a b"
	_, err := client.New(cfg)
	require.ErrorContains(t, err, "make a client of http://a b: ")
}

func TestTheServerRefusesWhatItDoesNotServe(t *testing.T) {
	c, err := client.New(fake.New().Config())
	require.NoError(t, err)
	_, err = client.Of(c, racks, "").Get(t.Context(), "a", metav1.GetOptions{})
	require.ErrorContains(t, err, "does not serve GET /apis/hardware.example.com/v1beta2/racks/a")
	require.False(t, apierrors.IsNotFound(err), "%v", err)
	require.PanicsWithValue(t, "add to a fake API server: *client_test.rack /a: the kind is not served", func() { fake.New(newRack("a", "")) })
	s := fake.Serving([]vmi.Definition{racks.Definition}, newRack("a", ""))
	for path, code := range map[string]int{
		"/apis/hardware.example.com/v1beta2/racks/a":                      http.StatusOK,
		"/apis/hardware.example.com/v1beta2/namespaces/default/racks/a":   http.StatusNotImplemented,
		"/apis/hardware.example.com/v1/racks/a":                           http.StatusNotImplemented,
		"/apis/kubevirt.io/v1/virtualmachines/a":                          http.StatusNotImplemented,
		"/apis/kubevirt.io/v1/virtualmachines":                            http.StatusOK,
		"/apis/kubevirt.io/v1/namespaces/default/virtualmachines/a/scale": http.StatusNotImplemented,
		"/api/v1/pods": http.StatusNotImplemented,
		"/version":     http.StatusOK,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://fake"+path, strings.NewReader(""))
		require.NoError(t, err)
		resp, err := s.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, code, resp.StatusCode, path)
	}
}
