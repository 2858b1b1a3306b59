package informer_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

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
	vmis := informer.New(c.VirtualMachineInstances(""), informer.Selection{})
	go vmis.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), vmis.HasSynced) {
		return
	}
	for _, v := range vmis.Select("default", labels.SelectorFromSet(labels.Set{"app": "web"})) {
		fmt.Println(v.Name)
	}
	// Output: testvmi
}
