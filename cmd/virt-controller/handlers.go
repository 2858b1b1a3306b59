package main

import (
	"context"
	"maps"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/scheduler/subresource"
	"github.com/podvisor/podvisor/vmi"
)

// handlers answer the webhooks and the verbs of users, each with limits of its own.
func handlers(s *ops.Setup, api clients, c *controller.Controller, serving *admission.Serving, verbs *subresource.Server, namespace, fields string) map[string]http.Handler {
	all := admission.Webhooks{Settings: s.Settings.Config, KubeVirts: s.Settings.KubeVirts, Logger: s.Log}.Handlers()
	all[admission.EvictionPath] = new(admission.Gate).Limit(admission.Evictions{
		Kube: api.answerKube, VMIs: api.answerVMIs, Cached: c.Cached, Settings: s.Settings.Config, Logger: s.Log,
	})
	all[admission.UninstallPath] = new(admission.Gate).Limit(admission.Uninstalls{
		Kube: api.answerKube, Metadata: s.Metadata, Namespace: namespace, Hold: serving.Hold, Logger: s.Log,
	})
	all = admission.AllowWhile(s.Settings.Foreign, all)
	// virt-controller creates no VMI while KubeVirt itself is installed.
	all[admission.OwnedPath] = new(admission.Gate).Limit(admission.Owned{Owners: api.answerVMIs, Settings: s.Settings.Config, Logger: s.Log, Launchers: admission.Launchers{
		Rendering: c.Rendering, Kube: api.answerKube, Cached: c.Instance,
		Fields: strings.FieldsFunc(fields, func(r rune) bool { return r == ',' || r == ' ' }),
		Facts: func(ctx context.Context, v *vmi.VirtualMachineInstance) (pod.Facts, error) {
			return controller.Facts(ctx, api.answerKube, api.answerDynamic, v)
		},
		CachedPod: func(namespace, name string) *corev1.Pod {
			p, _ := c.Cached(namespace, name)
			return p
		},
	}})
	all = admission.AtSecretPaths(serving.Token, all)
	maps.Copy(all, verbs.Handlers())
	return all
}
