package main

import (
	"context"

	"k8s.io/client-go/discovery"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
)

// built completes what launcher pods are made with by the way in which container disks
// reach them, auto or by its name, and by the build.
func built(ctx context.Context, l pod.Launcher, disks string, api discovery.ServerVersionInterface) (pod.Launcher, error) {
	var err error
	if l.ContainerDisks, err = controller.ContainerDisks(ctx, disks, api); err != nil {
		return l, err
	}
	l.Build, err = controller.Build(l)
	return l, err
}
