package informer_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	// In a cluster: rest.InClusterConfig().
	cfg := fake.New(vmitest.New(vmitest.WithLabel("app", "web"))).Config()
	c, err := client.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := informer.NewFactory(c, metav1.NamespaceAll)
	vmis, err := informer.For(factory, vmi.VirtualMachineInstances, informer.Selection{})
	if err != nil {
		fmt.Println(err)
		return
	}
	factory.Start(ctx)
	if !factory.WaitForCacheSync(ctx) {
		return
	}
	web, err := vmis.Lister().Namespace("default").List(labels.SelectorFromSet(labels.Set{"app": "web"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range web {
		fmt.Println(v.Name)
	}
	// Output: testvmi
}
