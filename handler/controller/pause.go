package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

var (
	// ErrNotHere is the class of the errors of a call about a VMI that this handler
	// does not handle: it does not exist, has another UID, runs on another node, was
	// not handed over yet or has ended.
	ErrNotHere = errors.New("no such VMI on this node")
	// ErrStopping is the class of the errors of a call about a VMI that is being
	// deleted.
	ErrStopping = errors.New("the VMI is being deleted")
)

// Pause pauses the guest of the VMI until [Controller.Unpause], and returns when it
// is paused; one that is paused already is no error. The VMI's condition Paused
// follows. An empty uid is that of any VMI of the name.
//
// A VMI that is not handled here is an [ErrNotHere], one that is being deleted an
// [ErrStopping]. An error of the launcher is a [*control.Error]; its reason is
// protocol.ReasonUnavailable for a guest that does not run. Any other error says that
// the launcher does not answer. It may be called from any goroutine and waits for no
// other VMI.
func (c *Controller) Pause(ctx context.Context, namespace, name string, uid types.UID) error {
	return c.call(ctx, protocol.Target{Namespace: namespace, Name: name, UID: uid}, protocol.CallPause)
}

// Unpause resumes the guest of the VMI, whatever paused it, and returns when it runs;
// one that runs already is no error. The rest is as for [Controller.Pause].
func (c *Controller) Unpause(ctx context.Context, namespace, name string, uid types.UID) error {
	return c.call(ctx, protocol.Target{Namespace: namespace, Name: name, UID: uid}, protocol.CallUnpause)
}

// call makes a call to a launcher.
func (c *Controller) call(ctx context.Context, of protocol.Target, call protocol.Call) error {
	s, err := c.callable(of)
	if err != nil {
		return fmt.Errorf("%s VMI %s: %w", call, of.Key(), err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, actionTimeout, s.noAnswer())
	defer cancel()
	if err := s.client.Call(ctx, call, nil, nil); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s VMI %s: %w", call, of.Key(), err)
	}
	s.log.Info("called the launcher", "call", call)
	return nil
}

// callable is the session with a launcher that can be called.
func (c *Controller) callable(of protocol.Target) (*session, error) {
	v, s := c.handled(of)
	switch {
	case s == nil:
		return nil, ErrNotHere
	case v.DeletionTimestamp != nil:
		return nil, ErrStopping
	}
	return s, nil
}

// handled is a VMI with a pod on this node, and the session with the launcher in it. Nil:
// there is no such VMI, or no session with a launcher of it in such a pod.
func (c *Controller) handled(of protocol.Target) (*vmi.VirtualMachineInstance, *session) {
	if c.config.Settings != nil && c.config.Settings.OtherInstallation() != "" {
		return nil, nil // it is KubeVirt's
	}
	v := c.writer.Latest(of.Key(), c.cached(of.Key()))
	if v == nil || of.UID != "" && v.UID != of.UID {
		return nil, nil
	}
	for _, p := range handler.Pods(v, c.config.Node) {
		if p.UID == of.Pod || of.Pod == "" && p.Role == vmi.RoleActive {
			return v, c.session(of.Key(), p.UID)
		}
	}
	return nil, nil
}
