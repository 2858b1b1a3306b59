package main

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// handlers reach the handlers of nodes for migrations.
type handlers struct{ dialer *stream.Dialer }

func (h handlers) Handler(ctx context.Context, node, network string) (certificate, address string, err error) {
	p, err := h.dialer.Handler(ctx, node, network)
	return p.Certificate, p.Address, err
}

func (h handlers) Call(ctx context.Context, v *vmi.VirtualMachineInstance, pod types.UID, call protocol.Call, options any) error {
	return h.dialer.Of(pod).Call(ctx, v, call, options, nil)
}
