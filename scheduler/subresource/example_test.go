package subresource_test

import (
	"fmt"
	"net/http/httptest"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/scheduler/subresource"
	"github.com/podvisor/podvisor/vmi/client"
	vmifake "github.com/podvisor/podvisor/vmi/client/fake"
)

func Example() {
	c, err := client.New(vmifake.New().Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := subresource.New(subresource.Config{Client: c, Kube: fake.NewClientset()})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A caller that does not come through the API server is not let in.
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("PUT", "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/vm/start", nil))
	fmt.Println(w.Code)
	// Output: 401
}
