// Package local starts a local cluster with Podvisor in it, from the working tree.
package local

import (
	"context"
	"io"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/e2e/kubectl"
	"github.com/podvisor/podvisor/vmi/client"
)

// Config says which cluster is started.
type Config struct {
	// Name is the cluster's name. Required.
	Name string
	// More makes archives of further images for the nodes. Nil: there are none.
	More func(built []images.Built) (tars []string, err error)
	// Race gives Podvisor's programs the race detector of Go.
	Race bool
	// Out gets the progress. Required.
	Out io.Writer
}

// Site is a cluster with Podvisor and the ways to talk to it.
type Site struct {
	Cluster *cluster.Cluster
	Kubectl kubectl.Kubectl
	// Built are the images of Podvisor on the nodes.
	Built []images.Built
	// Access, and Kube and VMIs that use it, have no limit of their own, which would be
	// part of what is measured.
	Access *rest.Config
	Kube   kubernetes.Interface
	VMIs   *client.Client
}

// Up starts the cluster or finds it running, builds the images, puts them on the nodes,
// installs Podvisor and waits until it works. The working folder is that of the module
// e2e. With an error, the site has the cluster if that was started.
func Up(ctx context.Context, c Config) (s Site, err error) {
	if s.Cluster, err = cluster.Up(ctx, cluster.Config{Name: c.Name, Out: c.Out}); err != nil {
		return s, err
	}
	s.Kubectl = kubectl.Kubectl{Path: s.Cluster.Kubectl, Kubeconfig: s.Cluster.Kubeconfig}
	if s.Built, err = images.Build(ctx, images.Config{Race: c.Race, Out: c.Out}); err != nil {
		return s, err
	}
	if err := s.load(ctx, c); err != nil {
		return s, err
	}
	err = install.Install(ctx, install.Config{
		Kubectl: s.Kubectl, Manifests: "../manifests",
		Reference: images.Reference, Emulation: true, Content: images.Content(s.Built), Out: c.Out,
	})
	if err != nil {
		return s, err
	}
	err = s.connect()
	return s, err
}

// Open finds a cluster that runs with Podvisor in it. It builds and changes nothing.
func Open(name string) (s Site, err error) {
	if s.Cluster, err = cluster.Open(cluster.Config{Name: name}); err != nil {
		return s, err
	}
	s.Kubectl = kubectl.Kubectl{Path: s.Cluster.Kubectl, Kubeconfig: s.Cluster.Kubeconfig}
	err = s.connect()
	return s, err
}

func (s *Site) connect() (err error) {
	if s.Access, err = clientcmd.BuildConfigFromFlags("", s.Cluster.Kubeconfig); err != nil {
		return err
	}
	s.Access.QPS = -1
	if s.Kube, err = kubernetes.NewForConfig(s.Access); err != nil {
		return err
	}
	s.VMIs, err = client.New(s.Access)
	return err
}

// load puts the images on the nodes.
func (s Site) load(ctx context.Context, c Config) error {
	tars := images.Tars(s.Built)
	if c.More != nil {
		more, err := c.More(s.Built)
		if err != nil {
			return err
		}
		tars = append(tars, more...)
	}
	return s.Cluster.Load(ctx, tars...)
}

// Down removes the cluster, if there is one.
func (s Site) Down(ctx context.Context) error {
	if s.Cluster == nil {
		return nil
	}
	return s.Cluster.Down(context.WithoutCancel(ctx))
}
