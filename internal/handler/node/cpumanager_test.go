package node

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// kubelet answers which CPUs pods can have for themselves.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	cpus []int64
}

func (k kubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return &podresources.AllocatableResourcesResponse{CpuIds: k.cpus}, nil
}

func TestAKubeletDedicatesCPUsIfItSaysWhich(t *testing.T) {
	t.Parallel()
	for name, cpus := range map[string][]int64{"static": {2, 3}, "none": nil} {
		socket := filepath.Join(t.TempDir(), "kubelet.sock")
		l, err := net.Listen("unix", socket)
		require.NoError(t, err)
		s := grpc.NewServer()
		podresources.RegisterPodResourcesListerServer(s, kubelet{cpus: cpus})
		go func() { _ = s.Serve(l) }()
		got, err := DedicatesCPUs(t.Context(), socket)
		s.Stop()
		require.NoError(t, err)
		require.Equal(t, name == "static", got)
	}
	_, err := DedicatesCPUs(t.Context(), filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "ask the kubelet for CPUs")
}
