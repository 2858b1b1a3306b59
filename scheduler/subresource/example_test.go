package subresource_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gorilla/websocket"
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

// An API of one's own serves a console by a websocket. How it knows its callers, and what they
// may, is its own, or that of package frontproxy.
func ExampleJoin() {
	console := func() (net.Conn, error) { // a Dialer's Stream
		near, guest := net.Pipe()
		go func() { _, _ = io.WriteString(guest, "login: "); _ = guest.Close() }()
		return near, nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		far, err := console()
		if err == nil {
			err = subresource.Join(w, r, far, subresource.JoinOptions{})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	defer server.Close()

	client, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil) //nolint:bodyclose // a websocket has none
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	_, text, err := client.ReadMessage()
	fmt.Printf("%s%v\n", text, err)
	_, _, err = client.ReadMessage()
	fmt.Println(err)

	a, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = a.Body.Close() }()
	fmt.Println(a.Status)
	// Output:
	// login: <nil>
	// websocket: close 1000 (normal)
	// 400 Bad Request
}
