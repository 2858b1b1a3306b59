package frontproxy_test

import (
	"fmt"
	"net/http/httptest"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/scheduler/subresource/frontproxy"
)

func Example() {
	p, err := frontproxy.New(fake.NewClientset(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest("GET", "https://virt-controller/", nil)
	r.Header.Set("X-Remote-User", "admin")
	_, err = p.Authenticate(r)
	fmt.Println(err)
	// Output: request is not authenticated: ConfigMap kube-system/extension-apiserver-authentication is not read, or does not say whom to trust
}
