// List-vmis prints the VMIs of a cluster: namespace, name, phase and node. It is a
// module of its own, as an operator would be.
//
//	go run . -namespace default
//
// It takes the cluster from KUBECONFIG or ~/.kube/config, and in a pod from the
// pod's service account.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

func main() {
	flags := flag.NewFlagSet("list-vmis", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	namespace := flags.String("namespace", metav1.NamespaceAll, "list the VMIs of this namespace, or of all")
	switch err := flags.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Println("usage: list-vmis [FLAG...]")
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "list-vmis: %v: see list-vmis --help\n", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err == nil {
		err = list(ctx, os.Stdout, cfg, *namespace)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "list-vmis:", err)
		os.Exit(1)
	}
}

// list writes a line for each VMI in the namespace.
func list(ctx context.Context, out io.Writer, cfg *rest.Config, namespace string) error {
	c, err := client.New(cfg)
	if err != nil {
		return err
	}
	all, err := c.VirtualMachineInstances(namespace).List(ctx, metav1.ListOptions{})
	// The error may be about single VMIs, which cannot be decoded: the others are listed.
	if err != nil && !errors.Is(err, vmi.ErrUnreadable) {
		return fmt.Errorf("list VMIs: %w", err)
	}
	for _, v := range all.Items {
		if _, err := fmt.Fprintf(out, "%s/%s %s %s\n", v.Namespace, v.Name, v.Status.Phase, v.Status.NodeName); err != nil {
			return err
		}
	}
	return err
}
