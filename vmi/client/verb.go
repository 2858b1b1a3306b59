package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/decode"
)

// The largest answers that are read, in bytes. What is in them is the guest's to say.
const (
	maxAnswer     = 8 << 20
	maxScreenshot = 64 << 20
)

// VirtualMachines reads and writes VirtualMachines and calls their verbs. The verbs do
// not wait: a VM that was asked to start is not running yet.
type VirtualMachines interface {
	Objects[*vmi.VirtualMachine, *vmi.VirtualMachineList]

	// Start starts the VM. It is a conflict if the VM is running, or starts by itself.
	Start(ctx context.Context, name string, opts vmi.StartOptions) error
	// Stop stops the VM. It is a conflict if the VM is not running, unless its run
	// strategy is what starts it again and again.
	Stop(ctx context.Context, name string, opts vmi.StopOptions) error
	// Restart stops the VM and starts it anew, with another VMI.
	Restart(ctx context.Context, name string, opts vmi.RestartOptions) error
	// Migrate moves the running VM to another node. It is a conflict: this version moves none.
	Migrate(ctx context.Context, name string, opts vmi.MigrateOptions) error
	// ExpandSpec returns the VM with what its instance type and preference stand for.
	ExpandSpec(ctx context.Context, name string) (*vmi.VirtualMachine, error)
	// ExpandSpecOf is ExpandSpec for a VM that is not stored. Its namespace is empty or
	// that of the client, and v is not changed.
	ExpandSpecOf(ctx context.Context, v *vmi.VirtualMachine) (*vmi.VirtualMachine, error)
	// EvacuateCancel is that of the VM's VMI, see [Instances].
	EvacuateCancel(ctx context.Context, name string, opts vmi.EvacuateCancelOptions) error
	// PortForward connects to the ports of the VM's guest, see [Dial]. It asks for
	// nothing before a connection is made.
	PortForward(name string) Dial
}

// Instances reads and writes VirtualMachineInstances and calls their verbs.
type Instances interface {
	Objects[*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceList]

	// Pause stops the virtual CPUs until Unpause.
	Pause(ctx context.Context, name string, opts vmi.PauseOptions) error
	// Unpause lets a paused guest run on, and sets its clock.
	Unpause(ctx context.Context, name string, opts vmi.UnpauseOptions) error
	// SoftReboot asks the guest to reboot, by its agent or by ACPI.
	SoftReboot(ctx context.Context, name string) error
	// Reset resets the guest at once, as the button of a computer does.
	Reset(ctx context.Context, name string) error
	// Freeze makes the guest's file systems consistent on their disks and keeps the guest
	// from writing to them.
	Freeze(ctx context.Context, name string, opts FreezeOptions) error
	// Unfreeze ends Freeze.
	Unfreeze(ctx context.Context, name string) error
	// EvacuateCancel lets the VMI stay on the node that the options name, which it was to
	// leave. It is an error if it is to leave another one, and none if it need not leave.
	EvacuateCancel(ctx context.Context, name string, opts vmi.EvacuateCancelOptions) error

	// GuestInfo, Users and FileSystems are what the guest's agent reports. It is a
	// conflict if no agent is connected. The guest decides what is in them.
	GuestInfo(ctx context.Context, name string) (*vmi.VirtualMachineInstanceGuestAgentInfo, error)
	Users(ctx context.Context, name string) (*vmi.VirtualMachineInstanceGuestOSUserList, error)
	FileSystems(ctx context.Context, name string) (*vmi.VirtualMachineInstanceFileSystemList, error)

	// Console opens the guest's serial port, as a [net.Conn] with the rules of [Dial].
	// Who has it open loses it to the one who opens it next.
	Console(ctx context.Context, name string) (Stream, error)
	// VNC opens the guest's screen, of the protocol RFB. The server is the first to send.
	VNC(ctx context.Context, name string, opts VNCOptions) (Stream, error)
	// Screenshot returns what the guest shows, as a PNG of 64 MiB at most.
	Screenshot(ctx context.Context, name string) ([]byte, error)
	// PortForward connects to the ports of the guest, see [Dial]. It asks for nothing
	// before a connection is made.
	PortForward(name string) Dial
}

// FreezeOptions say how the file systems of a guest are frozen.
type FreezeOptions struct {
	// Timeout is when they are thawed if Unfreeze was not called by then. 0: after five
	// minutes. Negative: never.
	Timeout time.Duration
}

// freezeTimeout is when file systems are thawed unless something else is asked for.
const freezeTimeout = 5 * time.Minute

// VNCOptions say how a screen is opened.
type VNCOptions struct {
	// Preserve leaves the screen to who has it open: opening it is an error then. Default:
	// who has it open loses it.
	Preserve bool
}

// instances are the VMIs of a namespace.
type instances struct {
	objects[*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceList]
	verbs
}

// virtualMachines are the VMs of a namespace.
type virtualMachines struct {
	objects[*vmi.VirtualMachine, *vmi.VirtualMachineList]
	verbs
}

// verbs calls the verbs of the objects of a kind.
type verbs struct {
	client *Client
	of     vmi.Definition
	within string // the namespace
}

// newSubresources makes the client of the API of the verbs. It sends nothing.
func (c *Client) newSubresources() (rest.Interface, error) {
	gv := schema.GroupVersion{Group: vmi.SubresourceGroup, Version: "v1"}
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, gv)
	cfg := rest.CopyConfig(c.cfg)
	cfg.APIPath, cfg.GroupVersion = "/apis", &gv
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	return rest.RESTClientForConfigAndClient(cfg, c.http)
}

// request is a request for the verb of the object.
func (v verbs) request(r *rest.Request, name string, verb ...string) (*rest.Request, error) {
	if v.within == "" {
		return nil, fmt.Errorf("%s of %s %s: the client is for all namespaces: make one for the namespace of the object", verb[0], v.of.Kind, name)
	}
	r = r.Namespace(v.within).Resource(v.of.Plural).Name(name).SubResource(verb...)
	return r, r.Error()
}

// call calls a verb with the options, or without any if they are nil.
func (v verbs) call(ctx context.Context, name, verb string, opts any) error {
	r, err := v.request(v.client.subresources.Put(), name, strings.Split(verb, "/")...)
	if err != nil {
		return err
	}
	if opts != nil {
		body, err := json.Marshal(opts)
		if err != nil {
			return fmt.Errorf("encode the options of %s: %w", verb, err)
		}
		r = r.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body)
	}
	return r.Do(ctx).Error()
}

// read reads the answer of a verb, of the size at most.
func (v verbs) read(ctx context.Context, size int64, accept, name string, verb ...string) ([]byte, error) {
	r, err := v.request(v.client.subresources.Get().SetHeader("Accept", accept), name, verb...)
	if err != nil {
		return nil, err
	}
	answer, err := r.Stream(ctx)
	if err != nil {
		return nil, err
	}
	b, err := atMost(answer, size)
	if err != nil {
		return nil, fmt.Errorf("read %v of %s %s/%s: %w", verb, v.of.Kind, v.within, name, err)
	}
	return b, nil
}

// atMost reads an answer of the size at most, and closes it.
func atMost(answer io.ReadCloser, size int64) ([]byte, error) {
	defer func() { _ = answer.Close() }()
	b, err := io.ReadAll(io.LimitReader(answer, size+1))
	if err == nil && int64(len(b)) > size {
		return nil, fmt.Errorf("the answer has more than %d bytes", size)
	}
	return b, err
}

// answer reads the answer of a verb into a new T.
func answer[T any](ctx context.Context, v verbs, name, verb string) (*T, error) {
	b, err := v.read(ctx, maxAnswer, runtime.ContentTypeJSON, name, verb)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := json.Unmarshal(b, out); err != nil {
		return nil, fmt.Errorf("decode %s of %s %s/%s: %w", verb, v.of.Kind, v.within, name, err)
	}
	return out, nil
}

func (c virtualMachines) Start(ctx context.Context, name string, opts vmi.StartOptions) error {
	return c.call(ctx, name, "start", opts)
}

func (c virtualMachines) Stop(ctx context.Context, name string, opts vmi.StopOptions) error {
	return c.call(ctx, name, "stop", opts)
}

func (c virtualMachines) Restart(ctx context.Context, name string, opts vmi.RestartOptions) error {
	return c.call(ctx, name, "restart", opts)
}

func (c virtualMachines) Migrate(ctx context.Context, name string, opts vmi.MigrateOptions) error {
	return c.call(ctx, name, "migrate", opts)
}

func (c virtualMachines) ExpandSpec(ctx context.Context, name string) (*vmi.VirtualMachine, error) {
	b, err := c.read(ctx, maxAnswer, runtime.ContentTypeJSON, name, "expand-spec")
	if err != nil {
		return nil, err
	}
	return c.expanded(b, name, "expand-spec")
}

func (c virtualMachines) ExpandSpecOf(ctx context.Context, v *vmi.VirtualMachine) (*vmi.VirtualMachine, error) {
	const verb = "expand-vm-spec"
	if c.within == "" {
		return nil, fmt.Errorf("%s of %s %s: the client is for all namespaces: make one for a namespace", verb, c.of.Kind, v.Name)
	}
	given := v.DeepCopy()
	given.APIVersion, given.Kind = c.of.GroupVersion().String(), c.of.Kind
	body, err := json.Marshal(given)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s for %s: %w", c.of.Kind, v.Name, verb, err)
	}
	answer, err := c.client.subresources.Put().Namespace(c.within).Resource(verb).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Stream(ctx)
	if err != nil {
		return nil, err
	}
	b, err := atMost(answer, maxAnswer)
	if err != nil {
		return nil, fmt.Errorf("read %s of %s %s/%s: %w", verb, c.of.Kind, c.within, v.Name, err)
	}
	return c.expanded(b, v.Name, verb)
}

func (c virtualMachines) EvacuateCancel(ctx context.Context, name string, opts vmi.EvacuateCancelOptions) error {
	return c.call(ctx, name, cancelEvacuation, opts)
}

func (c instances) EvacuateCancel(ctx context.Context, name string, opts vmi.EvacuateCancelOptions) error {
	return c.call(ctx, name, cancelEvacuation, opts)
}

const cancelEvacuation = "evacuate/cancel"

// expanded decodes a VM that was expanded by the verb.
func (c virtualMachines) expanded(b []byte, name, verb string) (*vmi.VirtualMachine, error) {
	o := &vmi.VirtualMachine{}
	if err := decode.Into(b, o); err != nil && vmi.Unreadable(o) == nil {
		return nil, fmt.Errorf("decode %s of %s %s/%s: %w", verb, c.of.Kind, c.within, name, err)
	}
	return o, readable(c.of.Kind, o)
}

func (c instances) Pause(ctx context.Context, name string, opts vmi.PauseOptions) error {
	return c.call(ctx, name, "pause", opts)
}

func (c instances) Unpause(ctx context.Context, name string, opts vmi.UnpauseOptions) error {
	return c.call(ctx, name, "unpause", opts)
}

func (c instances) SoftReboot(ctx context.Context, name string) error {
	return c.call(ctx, name, "softreboot", nil)
}

func (c instances) Reset(ctx context.Context, name string) error {
	return c.call(ctx, name, "reset", nil)
}

func (c instances) Freeze(ctx context.Context, name string, opts FreezeOptions) error {
	after := opts.Timeout
	if after == 0 {
		after = freezeTimeout
	}
	return c.call(ctx, name, "freeze", vmi.FreezeUnfreezeTimeout{UnfreezeTimeout: &metav1.Duration{Duration: max(after, 0)}})
}

func (c instances) Unfreeze(ctx context.Context, name string) error {
	return c.call(ctx, name, "unfreeze", nil)
}

func (c instances) GuestInfo(ctx context.Context, name string) (*vmi.VirtualMachineInstanceGuestAgentInfo, error) {
	return answer[vmi.VirtualMachineInstanceGuestAgentInfo](ctx, c.verbs, name, "guestosinfo")
}

func (c instances) Users(ctx context.Context, name string) (*vmi.VirtualMachineInstanceGuestOSUserList, error) {
	return answer[vmi.VirtualMachineInstanceGuestOSUserList](ctx, c.verbs, name, "userlist")
}

func (c instances) FileSystems(ctx context.Context, name string) (*vmi.VirtualMachineInstanceFileSystemList, error) {
	return answer[vmi.VirtualMachineInstanceFileSystemList](ctx, c.verbs, name, "filesystemlist")
}

func (c instances) Screenshot(ctx context.Context, name string) ([]byte, error) {
	b, err := c.read(ctx, maxScreenshot, "*/*", name, "vnc", "screenshot")
	if err == nil && !bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) {
		return nil, fmt.Errorf("read the screenshot of %s %s/%s: the answer is no PNG", c.of.Kind, c.within, name)
	}
	return b, err
}
