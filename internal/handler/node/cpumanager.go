package node

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// kubeletTimeout is how long the kubelet may take to answer.
const kubeletTimeout = 2 * time.Second

// DedicatesCPUs asks the kubelet, at its socket of the resources of pods, whether it
// gives pods CPUs of their own: with the CPU manager policy static it says which.
func DedicatesCPUs(ctx context.Context, socket string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	c, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false, fmt.Errorf("ask the kubelet for CPUs that pods can have: %w", err)
	}
	defer c.Close()
	all, err := podresources.NewPodResourcesListerClient(c).GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		return false, fmt.Errorf("ask the kubelet for CPUs that pods can have: %w", err)
	}
	return len(all.GetCpuIds()) > 0, nil
}
