// Plain is list-vmis on client-go and core/v1 alone, without our types: what
// list-vmis is compared with.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// instance is what an operator without our types declares of a VMI.
type instance struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Affinity    *corev1.Affinity    `json:"affinity"`
		Tolerations []corev1.Toleration `json:"tolerations"`
	} `json:"spec"`
	Status struct {
		Phase    string `json:"phase"`
		NodeName string `json:"nodeName"`
	} `json:"status"`
}

func main() {
	namespace := flag.String("namespace", metav1.NamespaceAll, "list the VMIs of this namespace, or of all")
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

// list writes a line for each VMI in the namespace.
func list(ctx context.Context, out io.Writer, cfg *rest.Config, namespace string) error {
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	instances := schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	all, err := c.Resource(instances).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list VMIs: %w", err)
	}
	for _, item := range all.Items {
		var v instance
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &v); err != nil {
			return fmt.Errorf("read VMI %s/%s: %w", item.GetNamespace(), item.GetName(), err)
		}
		if _, err := fmt.Fprintf(out, "%s/%s %s %s\n", v.Namespace, v.Name, v.Status.Phase, v.Status.NodeName); err != nil {
			return err
		}
	}
	return nil
}
