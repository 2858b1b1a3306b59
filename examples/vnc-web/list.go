package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// row is a VM, or a VMI without one, as the page shows it.
type row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`
	Node      string `json:"node,omitempty"`
	Running   bool   `json:"running"`
	Paused    bool   `json:"paused"`
	// Startable and Stoppable say which verbs of a VM are worth a button.
	Startable bool `json:"startable"`
	Stoppable bool `json:"stoppable"`
}

// list reads the VMs and VMIs of the namespace, or of all. Those that cannot be decoded
// whole are shown too.
func list(ctx context.Context, c *client.Client, namespace string) ([]row, error) {
	vms, err := c.VirtualMachines(namespace).List(ctx, metav1.ListOptions{})
	if err != nil && !errors.Is(err, vmi.ErrUnreadable) {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	vmis, err := c.VirtualMachineInstances(namespace).List(ctx, metav1.ListOptions{})
	if err != nil && !errors.Is(err, vmi.ErrUnreadable) {
		return nil, fmt.Errorf("list VMIs: %w", err)
	}
	rows := map[[2]string]row{}
	for _, m := range vms.Items {
		// One that starts by itself may have no VMI at the moment.
		always := m.Spec.Strategy() == vmi.RunAlways || m.Spec.Strategy() == vmi.RunOnce
		rows[[2]string{m.Namespace, m.Name}] = row{Namespace: m.Namespace, Name: m.Name, State: string(m.Status.PrintableStatus), Startable: !always, Stoppable: always}
	}
	for _, v := range vmis.Items {
		key := [2]string{v.Namespace, v.Name}
		r, ofVM := rows[key]
		r.Namespace, r.Name, r.Node = v.Namespace, v.Name, v.Status.NodeName
		r.Running = v.Status.Phase == vmi.PhaseRunning
		if ofVM && !v.Status.Phase.Final() {
			r.Startable, r.Stoppable = false, true
		}
		if p := v.Status.Condition(vmi.ConditionPaused); p != nil && p.Status == corev1.ConditionTrue {
			r.Paused = true
		}
		if r.State == "" {
			r.State = string(v.Status.Phase)
		}
		if r.Paused {
			r.State = "Paused"
		}
		rows[key] = r
	}
	out := make([]row, 0, len(rows))
	for _, r := range rows {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}
