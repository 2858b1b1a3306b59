package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/podvisor/podvisor/scheduler/pod"
)

// buildOf names this program and the settings by which it renders pods, so that replicas
// that render the same know each other. What follows from the cluster's configuration is
// not in it: all replicas follow that.
func buildOf(c pod.Config) (string, error) {
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
	_, _ = fmt.Fprintf(sum, "%q %q %q %t %q", c.Image, c.FullImage, c.ImagePullPolicy, c.AllowEmulation, c.ContainerDisks)
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}
