package controller

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// api is an API server with one VMI and nothing else.
type api struct {
	t *testing.T

	mu       sync.Mutex
	version  int
	instance *vmi.VirtualMachineInstance
	watchers []*watcher
	patches  int // attempts to write
	written  int // those that changed the VMI
	silences int // of these, those that only say whether the launcher answers
	// conflicts is how many writes meet a VMI that was written in between.
	conflicts int
	// held says which writes meet one, by what the VMI would be after them. Nil: none does.
	held func(*vmi.VirtualMachineInstance) bool
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status"):
		a.patch(w, r)
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		a.watch(w, r)
	case r.Method == http.MethodGet:
		a.list(w, r)
	default:
		a.t.Errorf("unexpected %s %s", r.Method, r.URL)
	}
}

// watcher is a watch of the VMIs that it selects.
type watcher struct {
	events  chan metav1.WatchEvent
	selects func(*vmi.VirtualMachineInstance) bool
	has     bool // the VMI was selected last
}

// selection is what a request selects: the VMIs that run on a node, or that move to it.
func (a *api) selection(r *http.Request) func(*vmi.VirtualMachineInstance) bool {
	field, node, _ := strings.Cut(r.URL.Query().Get("fieldSelector"), "=")
	if node != nodeName && node != otherNode {
		a.t.Errorf("a handler must list the VMIs of its node only, not %q", r.URL.RawQuery)
	}
	return func(v *vmi.VirtualMachineInstance) bool {
		switch m := v.Status.MigrationState; field {
		case "status.nodeName":
			return v.Status.NodeName == node
		case "status.migrationState.targetNode":
			return m != nil && m.TargetNode == node
		}
		a.t.Errorf("the field %q is not selectable", field)
		return false
	}
}

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	selects := a.selection(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	l := vmi.VirtualMachineInstanceList{TypeMeta: metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachineInstances.Kind + "List"}}
	l.ResourceVersion = strconv.Itoa(a.version)
	if a.instance != nil && selects(a.instance) {
		l.Items = append(l.Items, *a.instance)
	}
	_ = json.NewEncoder(w).Encode(l)
}

func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	own := &watcher{events: make(chan metav1.WatchEvent, 100), selects: a.selection(r)}
	a.mu.Lock()
	a.watchers = append(a.watchers, own)
	own.has = a.instance != nil && own.selects(a.instance)
	if own.has && r.URL.Query().Get("sendInitialEvents") == "true" {
		own.events <- event("ADDED", a.instance)
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		end := &vmi.VirtualMachineInstance{TypeMeta: metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachineInstances.Kind}}
		end.ResourceVersion = strconv.Itoa(a.version)
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		own.events <- event("BOOKMARK", end)
	}
	a.mu.Unlock()
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case e := <-own.events:
			_ = json.NewEncoder(w).Encode(e)
		case <-r.Context().Done():
			return
		}
	}
}

// send sends a change to a watch: a VMI that it selects no more is gone for it.
func (w *watcher) send(kind string, v *vmi.VirtualMachineInstance) {
	selected := kind != "DELETED" && w.selects(v)
	switch {
	case selected && !w.has:
		kind = "ADDED"
	case !selected && w.has:
		kind = "DELETED"
	case !selected:
		return
	}
	w.has = selected
	w.events <- event(kind, v)
}

func event(kind string, v *vmi.VirtualMachineInstance) metav1.WatchEvent {
	raw, _ := json.Marshal(v)
	e := metav1.WatchEvent{Type: kind}
	e.Object.Raw = raw
	return e
}

func (a *api) patch(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.patches++
	var head struct {
		Metadata struct{ ResourceVersion string } `json:"metadata"`
	}
	_ = json.Unmarshal(body, &head)
	if a.conflicts > 0 {
		a.conflicts--
		a.change("MODIFIED", func(v *vmi.VirtualMachineInstance) {
			v.Labels = map[string]string{"changed": strconv.Itoa(a.conflicts)}
		})
	}
	switch {
	case a.instance == nil:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case head.Metadata.ResourceVersion != a.instance.ResourceVersion:
		fail(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	old, _ := json.Marshal(a.instance)
	patched, err := jsonpatch.MergePatch(old, body)
	if err != nil {
		a.t.Errorf("patch: %v", err)
	}
	var after vmi.VirtualMachineInstance
	_ = json.Unmarshal(patched, &after)
	if a.held != nil && a.held(&after) {
		fail(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	a.written++
	if onlySilence(a.instance.DeepCopy(), after.DeepCopy()) {
		a.silences++
	}
	a.change("MODIFIED", func(v *vmi.VirtualMachineInstance) { *v = after })
	_ = json.NewEncoder(w).Encode(a.instance)
}

// onlySilence says that one VMI differs from the other only in that its launcher does not answer.
// A busy host makes it so.
func onlySilence(before, after *vmi.VirtualMachineInstance) bool {
	silent := false
	for _, v := range []*vmi.VirtualMachineInstance{before, after} {
		if c := v.Status.Condition(vmi.ConditionSynchronized); c != nil && c.Reason == vmi.ReasonLauncherUnresponsive {
			v.Status.RemoveCondition(vmi.ConditionSynchronized)
			silent = true
		}
	}
	return silent && equality.Semantic.DeepEqual(before.Status, after.Status)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(code), Reason: reason,
	})
}

// change changes the VMI and sends it to the watchers. The lock is held.
func (a *api) change(kind string, f func(*vmi.VirtualMachineInstance)) {
	v := a.instance.DeepCopy()
	f(v)
	a.version++
	v.ResourceVersion = strconv.Itoa(a.version)
	a.instance = v
	for _, w := range a.watchers {
		w.send(kind, v)
	}
	if kind == "DELETED" {
		a.instance = nil
	}
}
