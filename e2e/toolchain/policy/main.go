package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		klog.ErrorS(err, "policy")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("usage: policy NODE KUBECONFIG SERVICES4 SERVICES6")
	}
	access, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", args[1], err)
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return fmt.Errorf("make a client of %s: %w", args[1], err)
	}
	config := options.NewKubeRouterConfig()
	config.HostnameOverride, config.ClusterIPCIDRs = args[0], args[2:]
	config.EnableIPv4, config.EnableIPv6, config.RunFirewall = true, true, true
	if err := awaitNode(ctx, client, args[0]); err != nil {
		return err
	}
	return enforce(ctx, client, config)
}

// awaitNode waits until the kubelet has made its Node with both addresses.
func awaitNode(ctx context.Context, client kubernetes.Interface, name string) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(n.Status.Addresses) > 2 { // two addresses and the name
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for node %s: %w", name, ctx.Err())
		case <-tick.C:
		}
	}
}

// enforce makes the node's rules follow the policies until ctx ends.
func enforce(ctx context.Context, client kubernetes.Interface, config *options.KubeRouterConfig) error {
	all := informers.NewSharedInformerFactory(client, 0)
	pods, namespaces := all.Core().V1().Pods().Informer(), all.Core().V1().Namespaces().Informer()
	policies := all.Networking().V1().NetworkPolicies().Informer()
	commands, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return fmt.Errorf("find iptables and ipset: %w", err)
	}
	c, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &sync.Mutex{}, commands, sets)
	if err != nil {
		return fmt.Errorf("make the controller of node %s: %w", config.HostnameOverride, err)
	}
	all.Start(ctx.Done())
	for kind, synced := range all.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("list %s: %w", kind, ctx.Err())
		}
	}
	anyPolicy := func(any) bool { return len(policies.GetStore().ListKeys()) > 0 }
	go again(ctx, c, anyPolicy)
	for _, watched := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{policies, c.NetworkPolicyEventHandler},
		{pods, cache.FilteringResourceEventHandler{FilterFunc: anyPolicy, Handler: c.PodEventHandler}},
		{namespaces, cache.FilteringResourceEventHandler{FilterFunc: anyPolicy, Handler: c.NamespaceEventHandler}},
	} {
		if _, err := watched.informer.AddEventHandler(watched.handler); err != nil {
			return err
		}
	}
	heartbeats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range heartbeats { // it sends one for each update of the rules and waits until it is taken
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	c.Run(heartbeats, ctx.Done(), &running)
	running.Wait()
	close(heartbeats)
	return nil
}

// again has the rules written every 15 seconds while there are policies, and once more. The
// controller ends at the first program that fails, perhaps between the rules of the two families,
// and begins again only with the next change, or after minutes.
func again(ctx context.Context, c *netpol.NetworkPolicyController, anyPolicy func(any) bool) {
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for had := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		has := anyPolicy(nil)
		if has || had {
			c.RequestFullSync()
		}
		had = has
	}
}
