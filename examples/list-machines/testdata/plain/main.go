// Plain is list-machines on client-go alone, without our types: the floor that
// list-machines is measured against.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	namespace := flag.String("namespace", metav1.NamespaceAll, "list the machines of this namespace, or of all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err == nil {
		err = list(ctx, os.Stdout, cfg, *namespace)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

// list writes a line for each machine in the namespace.
func list(ctx context.Context, out io.Writer, cfg *rest.Config, namespace string) error {
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	machines := schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	all, err := c.Resource(machines).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list machines: %w", err)
	}
	for _, v := range all.Items {
		phase, _, _ := unstructured.NestedString(v.Object, "status", "phase")
		node, _, _ := unstructured.NestedString(v.Object, "status", "nodeName")
		if _, err := fmt.Fprintf(out, "%s/%s %s %s\n", v.GetNamespace(), v.GetName(), phase, node); err != nil {
			return err
		}
	}
	return nil
}
