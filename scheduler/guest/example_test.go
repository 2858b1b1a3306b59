package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler/guest"
	"github.com/podvisor/podvisor/scheduler/subresource/frontproxy"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// An observation asks a guest. What is refused is a finding to decide on.
func Example() {
	observe := func(ctx context.Context, g guest.Guests, v *vmi.VirtualMachineInstance) (frozen bool, _ *vmi.Finding) {
		var info vmi.VirtualMachineInstanceGuestAgentInfo
		var refused *vmi.Refusal
		if errors.As(g.Call(ctx, v, "guestosinfo", nil, &info), &refused) {
			return false, &refused.Finding
		}
		return info.FSFreezeStatus != "", nil
	}
	_, why := observe(context.Background(), guest.Guests{}, &vmi.VirtualMachineInstance{Status: vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseSucceeded}})
	fmt.Println(why.Reason)
	// Output: Unavailable
}

// frames answers GET /apis/example.com/v1/namespaces/{namespace}/vms/{name}/frame, a verb of
// another program in an API group of its own, which the API server aggregates.
type frames struct {
	// caller is who the API server says that it asks for: [frontproxy.Proxy.Authenticate].
	caller     func(*http.Request) (frontproxy.User, error)
	authorizer frontproxy.Authorizer
	vmis       *client.Client
	guests     guest.Guests
}

func (f frames) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, err := f.caller(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	allowed, reason, err := f.authorizer.Allowed(r.Context(), user, authorizationv1.ResourceAttributes{
		Group: "example.com", Version: "v1", Resource: "vms", Subresource: "frame", Verb: "get", Namespace: namespace, Name: name,
	})
	if err != nil || !allowed {
		http.Error(w, reason, http.StatusForbidden)
		return
	}
	v, err := f.vmis.VirtualMachineInstances(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	// Its launchers answer the call by supervisor.Config.Calls. What they answer is a tenant's.
	var frame struct{ Number int }
	if err := f.guests.Call(r.Context(), v, "frame.example.com", nil, &frame); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	fmt.Fprintln(w, "frame", frame.Number)
}

// launchers stand for the way over virt-handler to the launchers: handler/stream.Dialer.
type launchers struct{}

func (launchers) Call(_ context.Context, _ *vmi.VirtualMachineInstance, call protocol.Call, _, answer any) error {
	if call != "frame.example.com" {
		return &vmi.Refusal{Finding: vmi.Finding{Reason: vmi.RefusedUnknown, Message: "no such call"}}
	}
	return json.Unmarshal([]byte(`{"number":42}`), answer)
}

func (launchers) Stream(context.Context, *vmi.VirtualMachineInstance, protocol.Stream) (net.Conn, error) {
	return nil, errors.New("no stream")
}

// A verb of another program: an API of its own, the rights of Kubernetes, and a call that its
// launchers answer.
func ExampleGuests_Call() {
	vmis, err := client.New(fake.New(vmitest.New(vmitest.WithName("hello"), vmitest.WithPhase(vmi.PhaseRunning))).Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	kube := kubefake.NewClientset()
	kube.PrependReactor("create", "subjectaccessreviews", func(a kubetesting.Action) (bool, kruntime.Object, error) {
		review := a.(kubetesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = review.Spec.User == "ada" && review.Spec.ResourceAttributes.Subresource == "frame"
		return true, review, nil
	})
	own := http.NewServeMux()
	own.Handle("GET /apis/example.com/v1/namespaces/{namespace}/vms/{name}/frame", frames{
		caller: func(r *http.Request) (frontproxy.User, error) {
			return frontproxy.User{Name: r.Header.Get("X-Remote-User")}, nil
		},
		authorizer: frontproxy.Authorizer{Kube: kube}, vmis: vmis, guests: guest.Guests{Nodes: launchers{}},
	})
	for _, user := range []string{"ada", "eve"} {
		r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/namespaces/default/vms/hello/frame", nil)
		r.Header.Set("X-Remote-User", user)
		w := httptest.NewRecorder()
		own.ServeHTTP(w, r)
		fmt.Println(user, w.Code, w.Body)
	}
	// Output:
	// ada 200 frame 42
	//
	// eve 403
}
