package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Plumber makes the network of a machine in the pod that the launcher is in.
// What it makes again is what is there.
type Plumber func(ctx context.Context, launcher *control.Client, v *vmi.VirtualMachineInstance) (network.Config, error)

// The reasons of what can go wrong here.
const (
	reasonNetwork  = "NetworkFailed"
	reasonLauncher = "LauncherRefuses"
)

// actionTimeout is how long an action may take. A launcher that does not answer
// holds one worker for so long, and others' machines wait for workers.
const actionTimeout = 5 * time.Second

// act does what the plan says: the actions until one fails, then the status in
// any case.
func (c *Controller) act(ctx context.Context, key string, s *session, o handler.Observed, p handler.Plan) error {
	var err error
	for _, a := range p.Actions {
		if err = c.do(ctx, key, s, o, a); err != nil {
			break
		}
	}
	return errors.Join(err, c.report(ctx, key, s, o, p))
}

// do does one action.
func (c *Controller) do(ctx context.Context, key string, s *session, o handler.Observed, a handler.Action) error {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	switch a := a.(type) {
	case handler.Connect:
		c.connect(ctx, key, a.PodUID)
	case handler.Disconnect:
		c.disconnect(key)
		c.log.Info("gave up the launcher", "vmi", key)
	case handler.Plumb:
		return c.plumb(ctx, key, s, o)
	case handler.Put:
		return c.put(ctx, key, s, o, a)
	case handler.Tell:
		c.tell(ctx, o.Instance, a.Event)
	default:
		return fmt.Errorf("action %T is not known", a)
	}
	return nil
}

func (c *Controller) plumb(ctx context.Context, key string, s *session, o handler.Observed) error {
	n, err := c.config.Plumb(ctx, s.client, o.Instance)
	if err != nil {
		s.fail(handler.Finding{Reason: reasonNetwork, Message: err.Error()}, o.Now)
		return again("make the network", err)
	}
	s.plumbed(n)
	c.log.Info("made the network", "vmi", key, "interfaces", len(n.Attachments))
	return nil
}

func (c *Controller) put(ctx context.Context, key string, s *session, o handler.Observed, p handler.Put) error {
	d := control.Desired{Instance: essence(o.Instance), Interfaces: s.attachments(), Settings: p.Settings}
	if p.Stop {
		d.Stop = &control.Stop{GracePeriodSeconds: int64(p.Grace.Seconds())}
	}
	if err := s.client.Put(ctx, d); err != nil {
		s.fail(handler.Finding{Reason: reasonLauncher, Message: err.Error()}, o.Now)
		return again("tell the launcher", err)
	}
	s.told(p.Wish)
	c.log.Info("told the launcher what is wanted", "vmi", key, "stop", p.Stop)
	return nil
}

// again is an error that is tried again, whatever it is: the machine's spec
// cannot change, but its pod and its launcher may.
func again(what string, err error) error {
	if errors.Is(err, vmi.ErrInvalid) {
		return errors.New(what + ": " + err.Error())
	}
	return fmt.Errorf("%s: %w", what, err)
}

// essence is the part of a machine that a launcher needs: it is the same as long
// as the machine is the same, whatever is written about it.
func essence(v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	return &vmi.VirtualMachineInstance{
		TypeMeta: metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: "VirtualMachineInstance"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: v.Name, UID: v.UID, Labels: v.Labels, Annotations: v.Annotations,
		},
		Spec: v.Spec,
	}
}

// writeTimeout is how long the API server may take to write a status.
const writeTimeout = 10 * time.Second

// report writes the status and, if that changed it, the events that go with it.
// A write that was begun is completed even if the Controller ends: whether it
// came about would not be known otherwise, and its event be lost.
func (c *Controller) report(ctx context.Context, key string, s *session, o handler.Observed, p handler.Plan) error {
	if p.Status == nil || equality.Semantic.DeepEqual(&o.Instance.Status, p.Status) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	changed := o.Instance.DeepCopy()
	changed.Status = *p.Status
	v, err := client.WriteStatus(ctx, c.config.Client.VirtualMachineInstances(o.Instance.Namespace), o.Instance, changed)
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	s.wrote(o.Instance.ResourceVersion, v)
	c.log.Info("wrote the status", "vmi", key, "phase", p.Status.Phase)
	for _, e := range p.Events {
		c.tell(ctx, o.Instance, e)
	}
	return nil
}
