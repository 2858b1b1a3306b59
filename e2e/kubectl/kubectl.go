// Package kubectl runs kubectl as a user would. It touches that program and
// nothing else.
package kubectl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Kubectl is a kubectl that talks to one cluster.
type Kubectl struct {
	// Path is the program. Empty: kubectl from the PATH.
	Path string
	// Kubeconfig is the file that names the cluster. Required.
	Kubeconfig string
}

// Run runs kubectl with the arguments and returns what it printed. An error
// holds what it printed to its standard error.
func (k Kubectl) Run(ctx context.Context, args ...string) (string, error) {
	return k.RunInput(ctx, nil, args...)
}

// RunInput is Run with a standard input.
func (k Kubectl) RunInput(ctx context.Context, in io.Reader, args ...string) (string, error) {
	var out, errs bytes.Buffer
	c := k.Command(ctx, args...)
	c.Stdin, c.Stdout, c.Stderr = in, &out, &errs
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Command prepares a call of kubectl.
func (k Kubectl) Command(ctx context.Context, args ...string) *exec.Cmd {
	path := k.Path
	if path == "" {
		path = "kubectl"
	}
	c := exec.CommandContext(ctx, path, args...)
	c.Env = append(os.Environ(), "KUBECONFIG="+k.Kubeconfig)
	return c
}
