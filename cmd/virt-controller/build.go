package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/discovery"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
)

// rendering completes the configuration by the way in which container disks reach pods,
// auto or by its name, and by the build.
func rendering(c pod.Config, disks string, api discovery.DiscoveryInterface) (pod.Config, error) {
	var err error
	if c.ContainerDisks, err = controller.ContainerDisks(disks, api); err != nil {
		return c, err
	}
	return built(c)
}

// built names in the configuration this program and the settings by which it renders pods,
// so that replicas that render the same know each other. What follows from the cluster's
// configuration is not in it: all replicas follow that.
func built(c pod.Config) (pod.Config, error) {
	path, err := os.Executable()
	if err != nil {
		return c, fmt.Errorf("find the own program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return c, fmt.Errorf("read the own program: %w", err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return c, fmt.Errorf("read the own program: %w", err)
	}
	_, _ = fmt.Fprintf(sum, "%q %q %q %t %q", c.Image, c.FullImage, c.ImagePullPolicy, c.AllowEmulation, c.ContainerDisks)
	c.Build = hex.EncodeToString(sum.Sum(nil)[:16])
	return c, nil
}
