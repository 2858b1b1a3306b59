package controller

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"github.com/podvisor/podvisor/scheduler/pod"
)

// imageVolumesSince is the minor version of Kubernetes 1 from which on a pod may
// have images as volumes without a feature gate.
const imageVolumesSince = 35

// containerDisks is the way that disks in container images take in the cluster:
// the wanted one, which is image-volume or init-copy, or with auto (or nothing)
// the better one of those that the cluster's version has, which it reads.
func containerDisks(ctx context.Context, wanted string, d discovery.ServerVersionInterface) (pod.ContainerDisks, error) {
	switch wanted {
	case "image-volume":
		return pod.ImageVolume, nil
	case "init-copy":
		return pod.InitCopy, nil
	case "", "auto":
	default:
		return "", fmt.Errorf("container disks %q: must be auto, image-volume or init-copy", wanted)
	}
	v, err := discovery.ToServerVersionInterfaceWithContext(d).ServerVersionWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("read the version of the API server: %w", err)
	}
	if minor(v) >= imageVolumesSince {
		return pod.ImageVolume, nil
	}
	return pod.InitCopy, nil
}

// minor is the minor version of Kubernetes 1, or 0 if it cannot be read. Some
// providers add a sign to it, as in "35+".
func minor(v *version.Info) int {
	if v.Major != "1" {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil {
		return 0
	}
	return n
}
