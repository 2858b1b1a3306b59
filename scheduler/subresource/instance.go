package subresource

import (
	"context"
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// mostToCall is how long a call to a node may take.
	mostToCall = 10 * time.Second
	// mostToAsk is how long one may take that the guest's agent answers. The API server
	// waits a minute.
	mostToAsk = 45 * time.Second
)

const (
	noReboot = "VMI neither have the agent connected nor the ACPI feature enabled"
)

// call makes a call to the VMI's node.
func (s *Server) call(ctx context.Context, v *vmi.VirtualMachineInstance, call protocol.Call, options, answer any) error {
	if err := onNode(v); err != nil {
		return err
	}
	most := mostToCall
	if call.AsksAgent() {
		most = mostToAsk
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := s.Nodes.Call(ctx, v, call, options, answer); err != nil {
		return refused(v, string(call), err)
	}
	return nil
}

// onNode says whether the VMI is on a node that can be asked.
func onNode(v *vmi.VirtualMachineInstance) error {
	if p := v.Status.Phase; p != vmi.Running && p != vmi.Scheduled {
		return bad("Unable to connect to VirtualMachineInstance because phase is %s instead of Running or Scheduled", p)
	}
	return nil
}

// running reads the VMI, which must run.
func (s *Server) running(ctx context.Context, r *request, what string) (*vmi.VirtualMachineInstance, error) {
	v, err := s.vmi(ctx, r)
	if err != nil {
		return nil, err
	}
	if v.Status.Phase != vmi.Running {
		return nil, conflict(ofVMI, v.Name, "%s is not running", what)
	}
	return v, nil
}

func (s *Server) pause(ctx context.Context, r *request) (any, error) {
	var o vmi.PauseOptions
	if err := r.body(&o); err != nil {
		return nil, err
	}
	dryRun, err := dry(o.DryRun)
	if err != nil {
		return nil, err
	}
	v, err := s.running(ctx, r, "VM")
	switch {
	case err != nil:
		return nil, err
	case v.Spec.LivenessProbe != nil && v.Spec.LivenessProbe.GuestAgentPing == nil:
		return nil, apierrors.NewForbidden(ofVMI, v.Name, errors.New("Pausing VMIs with a non-GuestAgentPing LivenessProbe is not supported")) //nolint:staticcheck // clients match it
	case v.Status.Condition(vmi.ConditionPaused) != nil:
		return nil, conflict(ofVMI, v.Name, "VMI is already paused")
	case dryRun:
		return nil, nil
	}
	return nil, s.call(ctx, v, protocol.CallPause, nil, nil)
}

func (s *Server) unpause(ctx context.Context, r *request) (any, error) {
	var o vmi.UnpauseOptions
	if err := r.body(&o); err != nil {
		return nil, err
	}
	dryRun, err := dry(o.DryRun)
	if err != nil {
		return nil, err
	}
	v, err := s.vmi(ctx, r)
	if err != nil {
		return nil, err
	}
	owner, err := s.vm(ctx, r)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, err
	case err == nil && owner.Status.SnapshotInProgress != nil:
		return nil, conflict(ofVM, v.Name, "VM snapshot is in progress; try again when it is done")
	case v.Status.Phase != vmi.Running:
		return nil, conflict(ofVMI, v.Name, "VMI is not running")
	case v.Status.Condition(vmi.ConditionPaused) == nil:
		return nil, conflict(ofVMI, v.Name, "VMI is not paused")
	case dryRun:
		return nil, nil
	}
	return nil, s.call(ctx, v, protocol.CallUnpause, nil, nil)
}

func (s *Server) freeze(ctx context.Context, r *request) (any, error) {
	v, err := s.running(ctx, r, "VM")
	if err != nil {
		return nil, err
	}
	var o vmi.FreezeUnfreezeTimeout
	if err := r.body(&o); err != nil {
		return nil, err
	}
	if o.UnfreezeTimeout == nil {
		return nil, bad("Unfreeze timeout in freeze request is not set: set unfreezeTimeout, as in \"10s\"")
	}
	if o.UnfreezeTimeout.Duration < 0 {
		return nil, bad("unfreezeTimeout %s is negative", o.UnfreezeTimeout.Duration)
	}
	return nil, s.call(ctx, v, protocol.CallFreeze, o, nil)
}

func (s *Server) unfreeze(ctx context.Context, r *request) (any, error) {
	v, err := s.running(ctx, r, "VMI")
	if err != nil {
		return nil, err
	}
	return nil, s.call(ctx, v, protocol.CallUnfreeze, nil, nil)
}

func (s *Server) softReboot(ctx context.Context, r *request) (any, error) {
	v, err := s.running(ctx, r, "VM")
	if err != nil {
		return nil, err
	}
	acpi := true
	if f := v.Spec.Domain.Features; f != nil && f.ACPI.Enabled != nil {
		acpi = *f.ACPI.Enabled
	}
	switch {
	case is(v.Status.Condition(vmi.ConditionPaused)):
		return nil, conflict(ofVMI, v.Name, "VMI is paused")
	case v.Status.Condition(vmi.ConditionAgentConnected) == nil && !acpi:
		return nil, conflict(ofVMI, v.Name, "%s", noReboot)
	}
	return nil, s.call(ctx, v, protocol.CallSoftReboot, nil, nil)
}

func (s *Server) reset(ctx context.Context, r *request) (any, error) {
	v, err := s.vmi(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := onNode(v); err != nil {
		return nil, bad("Failed to reset non-running VMI with phase %s: %s", v.Status.Phase, err.Error())
	}
	return nil, s.call(ctx, v, protocol.CallReset, nil, nil)
}

// ask asks the agent of the guest.
func (s *Server) ask(ctx context.Context, r *request, call protocol.Call, answer any) (any, error) {
	v, err := s.running(ctx, r, "VMI")
	if err != nil {
		return nil, err
	}
	if v.Status.Condition(vmi.ConditionAgentConnected) == nil {
		return nil, conflict(ofVMI, v.Name, "VMI does not have guest agent connected; install and start qemu-guest-agent in the guest")
	}
	return answer, s.call(ctx, v, call, nil, answer)
}

func (s *Server) guestInfo(ctx context.Context, r *request) (any, error) {
	answer, err := s.ask(ctx, r, protocol.CallGuestOSInfo, new(vmi.VirtualMachineInstanceGuestAgentInfo))
	if err != nil && r.Header.Get("Accept") != runtime.ContentTypeJSON {
		return nil, inWords{err}
	}
	return answer, err
}

func (s *Server) users(ctx context.Context, r *request) (any, error) {
	return s.ask(ctx, r, protocol.CallUserList, new(vmi.VirtualMachineInstanceGuestOSUserList))
}

func (s *Server) fileSystems(ctx context.Context, r *request) (any, error) {
	return s.ask(ctx, r, protocol.CallFileSystemList, new(vmi.VirtualMachineInstanceFileSystemList))
}

// picture is a PNG file.
type picture []byte

// mostOfPicture is the largest screenshot, in bytes: an 8K screen in 24 bits, without
// compression, has fewer.
const mostOfPicture = 128 << 20

func (s *Server) screenshot(ctx context.Context, r *request) (any, error) {
	v, err := s.withScreen(ctx, r)
	if err != nil {
		return nil, err
	}
	leave, err := s.streams.take(key(v))
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, mostToCall)
	defer cancel()
	c, err := s.Nodes.Stream(ctx, v, protocol.StreamScreenshot)
	if err != nil {
		return nil, refused(v, "vnc/screenshot", err)
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	return nil, sendPicture(r, v, c)
}

// sendPicture passes a PNG file on. What it is is checked before anything is sent.
func sendPicture(r *request, v *vmi.VirtualMachineInstance, from io.Reader) error {
	const magic = "\x89PNG\r\n\x1a\n"
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(from, head); err != nil {
		return refused(v, "vnc/screenshot", err)
	}
	if string(head) != magic {
		return apierrors.NewInternalError(errors.New("the launcher of VMI " + v.Name + " answers with no PNG file"))
	}
	r.w.Header().Set("Content-Type", "image/png")
	_, err := r.w.Write(head)
	if err == nil {
		_, err = io.CopyN(r.w, from, mostOfPicture)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		panic(errCut) // the client must not take a part for the whole
	}
	return errStreamed
}

func (s *Server) cancelEvacuation(ctx context.Context, r *request) (any, error) {
	return nil, whileItChanges(r, func() error {
		v, err := s.evacuated(ctx, r)
		if err != nil {
			return err
		}
		var o vmi.EvacuateCancelOptions
		if r.options == nil {
			if err := r.body(&o); err != nil {
				return err
			}
			r.options = &o
		}
		o = *r.options
		if _, err := dry(o.DryRun); err != nil {
			return err
		}
		node := v.Status.EvacuationNodeName
		if node == "" {
			node = v.Status.NodeName
		}
		if node != "" {
			n, err := s.Kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			for _, t := range n.Spec.Taints {
				if err == nil && t.Key == s.DrainKey && t.Effect == "NoSchedule" {
					return bad("node %s has NodeDrainTaintKey %s: remove the taint first", node, t.Key)
				}
			}
		}
		switch {
		case v.Status.EvacuationNodeName == "":
			return nil
		case v.Status.EvacuationNodeName != o.EvacuationNodeName:
			return conflict(ofVMI, v.Name, "it is to leave node %s, and evacuationNodeName is %q; name that node", v.Status.EvacuationNodeName, o.EvacuationNodeName)
		}
		const at = "/status/evacuationNodeName"
		return s.patchVMI(ctx, v, o.DryRun, []operation{{"test", at, o.EvacuationNodeName}, {"remove", at, nil}}, "status")
	})
}

// evacuated is the VMI of the request: also of one for a VM.
func (s *Server) evacuated(ctx context.Context, r *request) (*vmi.VirtualMachineInstance, error) {
	if r.resource == ofVMIs {
		return s.vmi(ctx, r)
	}
	v, err := s.vm(ctx, r)
	if err != nil {
		return nil, err
	}
	i, err := s.vmi(ctx, r)
	switch {
	case apierrors.IsNotFound(err), err == nil && !v.Status.Created:
		return nil, conflict(ofVM, v.Name, "VMI is not started")
	case err != nil:
		return nil, err
	case !metav1.IsControlledBy(i, v):
		return nil, apierrors.NewInternalError(errors.New("VMI " + i.Name + " is not of VM " + v.Name + ": delete one of them"))
	}
	return i, nil
}
