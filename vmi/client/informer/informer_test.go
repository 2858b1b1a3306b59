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
	for _, tt := range []struct {
		name      string
		selection informer.Selection
		want      string
	}{
		{"of a node", informer.Selection{NodeName: "n1", Labels: "a=b"}, "status.nodeName=n1&a=b"},
		{"what moves to a node", informer.Selection{TargetNode: "n1"}, "status.migrationState.targetNode=n1&"},
		{"all", informer.Selection{}, "&"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := make(chan string, 10)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path + "?" + r.URL.Query().Get("fieldSelector") + "&" + r.URL.Query().Get("labelSelector")
				w.WriteHeader(http.StatusForbidden)
			}))
			defer s.Close()
			c, err := client.New(&rest.Config{Host: s.URL})
			require.NoError(t, err)
			i := informer.New(c.VirtualMachineInstances("default"), tt.selection)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go i.RunWithContext(ctx)
			require.Equal(t, "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances?"+tt.want, <-asked)
			require.Nil(t, i.Get("default", "testvmi"))
			require.Empty(t, i.List())
		})
	}
}
