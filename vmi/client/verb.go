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
// not wait: a VM that was asked to start is not running yet. It is made by
// [Client.VirtualMachines].
type VirtualMachines struct {
	Objects[*vmi.VirtualMachine, *vmi.VirtualMachineList]
	verbs
}

// VirtualMachineInstances reads and writes VirtualMachineInstances and calls their verbs. It is made by
// [Client.VirtualMachineInstances].
type VirtualMachineInstances struct {
	Objects[*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceList]
	verbs
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

// Start starts the VM. It is a conflict if the VM is running, or starts by itself.
func (c VirtualMachines) Start(ctx context.Context, name string, opts vmi.StartOptions) error {
	return c.call(ctx, name, "start", opts)
}

// Stop stops the VM. It is a conflict if the VM is not running, unless its run
// strategy is what starts it again and again.
func (c VirtualMachines) Stop(ctx context.Context, name string, opts vmi.StopOptions) error {
	return c.call(ctx, name, "stop", opts)
}

// Restart stops the VM and starts it anew, with another VMI.
func (c VirtualMachines) Restart(ctx context.Context, name string, opts vmi.RestartOptions) error {
	return c.call(ctx, name, "restart", opts)
}

// Migrate creates a migration of the running VM to another node, and returns before it has
// begun: [Client.VirtualMachineInstanceMigrations] lists it by the label
// [vmi.MigrationSelectorLabel]. An internal error says why the VM cannot move.
func (c VirtualMachines) Migrate(ctx context.Context, name string, opts vmi.MigrateOptions) error {
	return c.call(ctx, name, "migrate", opts)
}

// ExpandSpec returns the VM with what its instance type and preference stand for.
func (c VirtualMachines) ExpandSpec(ctx context.Context, name string) (*vmi.VirtualMachine, error) {
	b, err := c.read(ctx, maxAnswer, runtime.ContentTypeJSON, name, "expand-spec")
	if err != nil {
		return nil, err
	}
	return c.expanded(b, name, "expand-spec")
}

// ExpandSpecOf is ExpandSpec for a VM that is not stored. Its namespace is empty or
// that of the client, and v is not changed.
func (c VirtualMachines) ExpandSpecOf(ctx context.Context, v *vmi.VirtualMachine) (*vmi.VirtualMachine, error) {
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

// EvacuateCancel is that of the VM's VMI, see [VirtualMachineInstances.EvacuateCancel].
func (c VirtualMachines) EvacuateCancel(ctx context.Context, name string, opts vmi.EvacuateCancelOptions) error {
	return c.call(ctx, name, cancelEvacuation, opts)
}

// EvacuateCancel lets the VMI stay on the node that the options name, which it was to
// leave. It is an error if it is to leave another one, and none if it need not leave.
func (c VirtualMachineInstances) EvacuateCancel(ctx context.Context, name string, opts vmi.EvacuateCancelOptions) error {
	return c.call(ctx, name, cancelEvacuation, opts)
}

const cancelEvacuation = "evacuate/cancel"

// expanded decodes a VM that was expanded by the verb.
func (c VirtualMachines) expanded(b []byte, name, verb string) (*vmi.VirtualMachine, error) {
	o := &vmi.VirtualMachine{}
	if err := decode.Into(b, o); err != nil && vmi.Unreadable(o) == nil {
		return nil, fmt.Errorf("decode %s of %s %s/%s: %w", verb, c.of.Kind, c.within, name, err)
	}
	return o, readable(c.of.Kind, o)
}

// Pause stops the virtual CPUs until Unpause.
func (c VirtualMachineInstances) Pause(ctx context.Context, name string, opts vmi.PauseOptions) error {
	return c.call(ctx, name, "pause", opts)
}

// Unpause lets a paused guest run on, and sets its clock.
func (c VirtualMachineInstances) Unpause(ctx context.Context, name string, opts vmi.UnpauseOptions) error {
	return c.call(ctx, name, "unpause", opts)
}

// SoftReboot asks the guest to reboot, by its agent or by ACPI.
func (c VirtualMachineInstances) SoftReboot(ctx context.Context, name string) error {
	return c.call(ctx, name, "softreboot", nil)
}

// Reset resets the guest at once, as the button of a computer does.
func (c VirtualMachineInstances) Reset(ctx context.Context, name string) error {
	return c.call(ctx, name, "reset", nil)
}

// Freeze makes the guest's file systems consistent on their disks and keeps the guest
// from writing to them.
func (c VirtualMachineInstances) Freeze(ctx context.Context, name string, opts FreezeOptions) error {
	after := opts.Timeout
	if after == 0 {
		after = freezeTimeout
	}
	return c.call(ctx, name, "freeze", vmi.FreezeUnfreezeTimeout{UnfreezeTimeout: &metav1.Duration{Duration: max(after, 0)}})
}

// Unfreeze ends Freeze.
func (c VirtualMachineInstances) Unfreeze(ctx context.Context, name string) error {
	return c.call(ctx, name, "unfreeze", nil)
}

// GuestInfo is what the guest's agent reports of the guest. It is a conflict if no agent
// is connected. The guest decides what is in it.
func (c VirtualMachineInstances) GuestInfo(ctx context.Context, name string) (*vmi.VirtualMachineInstanceGuestAgentInfo, error) {
	return answer[vmi.VirtualMachineInstanceGuestAgentInfo](ctx, c.verbs, name, "guestosinfo")
}

// Users are the users who are logged in, with the rules of GuestInfo.
func (c VirtualMachineInstances) Users(ctx context.Context, name string) (*vmi.VirtualMachineInstanceGuestOSUserList, error) {
	return answer[vmi.VirtualMachineInstanceGuestOSUserList](ctx, c.verbs, name, "userlist")
}

// FileSystems are the guest's mounted file systems, with the rules of GuestInfo.
func (c VirtualMachineInstances) FileSystems(ctx context.Context, name string) (*vmi.VirtualMachineInstanceFileSystemList, error) {
	return answer[vmi.VirtualMachineInstanceFileSystemList](ctx, c.verbs, name, "filesystemlist")
}

// Screenshot returns what the guest shows, as a PNG of 64 MiB at most.
func (c VirtualMachineInstances) Screenshot(ctx context.Context, name string) ([]byte, error) {
	b, err := c.read(ctx, maxScreenshot, "*/*", name, "vnc", "screenshot")
	if err == nil && !bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) {
		return nil, fmt.Errorf("read the screenshot of %s %s/%s: the answer is no PNG", c.of.Kind, c.within, name)
	}
	return b, err
}
