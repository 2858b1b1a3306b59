package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/discovery"

	"github.com/podvisor/podvisor/scheduler/pod"
)

// Detect completes what launcher pods are made with by what is to be found out: the way of
// container disks in the cluster, and the build. Disks is image-volume, init-copy, or auto
// (or nothing) for the better one of those that the cluster's version has, which is read. The
// build is needed only where the pods are reviewed: see [pod.Launcher].
func Detect(ctx context.Context, l pod.Launcher, disks string, d discovery.ServerVersionInterface) (pod.Launcher, error) {
	var err error
	if l.ContainerDisks, err = containerDisks(ctx, disks, d); err != nil {
		return l, err
	}
	l.Build, err = build(l)
	return l, err
}

// build names this program and the settings by which it makes launcher pods: replicas that render the same have the same name, so each may review
// the pods of the other. It reads the program's own file. What follows from the cluster's
// configuration is not in it, since all replicas follow that; nor are the functions, traits,
// bindings and kinds of volumes of the Launcher, which the program has in its file.
func build(l pod.Launcher) (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the own program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the own program: %w", err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read the own program: %w", err)
	}
	_, _ = fmt.Fprintf(sum, "%q %q %q %t %q %q", l.Image, l.FullImage, l.ImagePullPolicy, l.AllowEmulation, l.ContainerDisks, l.Architecture)
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}
