package main

import (
	"cmp"
	"os"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/scheduler/subresource"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// version is set when it is linked: -ldflags "-X main.version=v1.2.3".
var version string

// subresources answer the verbs of VMs and VMIs. The pod says in its environment who it
// is: the tokens for the handlers are bound to it.
func subresources(s *ops.Setup, api clients, namespace string) (*subresource.Server, error) {
	core := api.verbKube.CoreV1()
	tokens := &stream.Tokens{Accounts: core.ServiceAccounts(namespace), Account: "virt-controller",
		PodName: os.Getenv("POD_NAME"), PodUID: types.UID(os.Getenv("POD_UID"))}
	return subresource.New(subresource.Config{
		Client: api.verbVMIs, Kube: api.verbKube, GitVersion: gitVersion(), Logger: s.Log,
		Nodes:    stream.NewDialer(stream.DialerConfig{Nodes: core.Nodes(), Handlers: core.Pods(namespace), Token: tokens.Token, Logger: s.Log}),
		Defaults: func() defaults.Profile { return s.Settings.Config().Defaults },
	})
}

// gitVersion is what the binary was built from, if it is known.
func gitVersion() string {
	built, _ := debug.ReadBuildInfo()
	if built == nil || built.Main.Version == "(devel)" {
		return version
	}
	return cmp.Or(version, built.Main.Version)
}
