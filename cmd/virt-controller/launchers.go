package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/scheduler/leader"
	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// launchers are what the reviews of launcher pods compare with: what the controller
// renders, and has in its caches. Others' admission may set the fields, which have commas
// or spaces between them.
func launchers(api clients, l *leader.Leader, fields string) admission.Launchers {
	return admission.Launchers{
		Rendering: l.Rendering, Kube: api.answerKube, Creating: l.Creating, Cached: l.AsRendered,
		Fields: strings.FieldsFunc(fields, func(r rune) bool { return r == ',' || r == ' ' }),
		Facts: func(ctx context.Context, v *vmi.VirtualMachineInstance) (pod.Facts, error) {
			return controller.Facts(ctx, api.answerKube, api.answerDynamic, v)
		},
		CachedPod: func(namespace, name string) *corev1.Pod {
			p, _ := l.Cached(namespace, name)
			return p
		},
	}
}
