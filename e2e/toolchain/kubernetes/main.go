// Command kubernetes is every Kubernetes program that a local cluster needs,
// linked into one binary and chosen by the name it is called with.
//
// One binary shares the code that seven would each carry: 140 MB instead of
// 512 MB, and one link step instead of seven. It is called through symbolic
// links (kube-apiserver, kubelet, kubectl, etcd, …) or with the program's name
// as the first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// commands are the programs that are cobra commands; etcd and coredns are not.
var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	// The kubelet sets up its own signal handling and panics on a context that already has it.
	"kubelet": func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl": kubectl.NewDefaultKubectlCommand,
}

func main() {
	args := os.Args
	name := filepath.Base(args[0])
	if !known(name) && len(args) > 1 {
		name, args = args[1], args[1:]
	}
	os.Args = args
	switch {
	case name == "etcd":
		etcdmain.Main(args)
	case name == "coredns":
		runCoreDNS()
	case commands[name] != nil:
		os.Exit(cli.Run(commands[name]()))
	default:
		names := []string{"etcd", "coredns"}
		for n := range commands {
			names = append(names, n)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "usage: %s {%s} ...\n", filepath.Base(os.Args[0]), strings.Join(names, "|"))
		os.Exit(2)
	}
}

func known(name string) bool {
	return name == "etcd" || name == "coredns" || commands[name] != nil
}
