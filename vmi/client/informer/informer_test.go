package informer_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
)

func TestAnInformerAsksForItsSelectionOnly(t *testing.T) {
	asked := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + "?" + r.URL.Query().Get("fieldSelector") + "&" + r.URL.Query().Get("labelSelector")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer s.Close()
	c, err := client.New(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	i := informer.New(c.VirtualMachineInstances("default"), informer.Selection{NodeName: "n1", Labels: "a=b"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go i.RunWithContext(ctx)
	require.Equal(t, "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances?status.nodeName=n1&a=b", <-asked)
	require.Nil(t, i.Get("default", "testvmi"))
	require.Empty(t, i.List())
}
