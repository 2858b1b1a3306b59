package fake

import (
	"bytes"
	"image"
	"image/png"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// running is the VMI of the call, which is in conflict with the words unless it runs.
func (c *call) running(words string) (*vmi.VirtualMachineInstance, error) {
	v, err := c.vmi()
	if err == nil && v.Status.Phase != vmi.Running {
		err = c.conflict(vmiKind, words)
	}
	return v, err
}

// done is the answer of the verbs of VMIs.
func done(err error) (reply, error) { return reply{code: http.StatusOK}, err }

// conditions writes the conditions of the VMI, which the change changes.
func (c *call) conditions(v *vmi.VirtualMachineInstance, dryRun []string, change func(*vmi.VirtualMachineInstanceStatus)) error {
	change(&v.Status)
	return c.set(vmiKind, dryRun, v.Status.Conditions, "status", "conditions")
}

func pause(c *call) (reply, error) {
	var opts vmi.PauseOptions
	if err := c.options(&opts); err != nil {
		return reply{}, err
	}
	v, err := c.running("VM is not running")
	switch {
	case err != nil:
		return reply{}, err
	case v.Spec.LivenessProbe != nil && v.Spec.LivenessProbe.GuestAgentPing == nil:
		return reply{}, apierrors.NewForbidden(singular(vmiKind), c.name, errProbe)
	case v.Status.Condition(vmi.ConditionPaused) != nil:
		return reply{}, c.conflict(vmiKind, "VMI is already paused")
	}
	return done(c.conditions(v, opts.DryRun, func(s *vmi.VirtualMachineInstanceStatus) {
		s.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: vmi.ReasonPausedByUser}, metav1.Now())
	}))
}

func unpause(c *call) (reply, error) {
	var opts vmi.UnpauseOptions
	if err := c.options(&opts); err != nil {
		return reply{}, err
	}
	v, err := c.running("VMI is not running")
	switch {
	case err != nil:
		return reply{}, err
	case v.Status.Condition(vmi.ConditionPaused) == nil:
		return reply{}, c.conflict(vmiKind, "VMI is not paused")
	}
	return done(c.conditions(v, opts.DryRun, func(s *vmi.VirtualMachineInstanceStatus) { s.RemoveCondition(vmi.ConditionPaused) }))
}

// has reports whether the condition is True.
func has(v *vmi.VirtualMachineInstance, t vmi.ConditionType) bool {
	c := v.Status.Condition(t)
	return c != nil && c.Status == corev1.ConditionTrue
}

func softReboot(c *call) (reply, error) {
	v, err := c.running("VM is not running")
	if err != nil {
		return reply{}, err
	}
	f := v.Spec.Domain.Features
	noACPI := f != nil && f.ACPI.Enabled != nil && !*f.ACPI.Enabled
	switch {
	case has(v, vmi.ConditionPaused):
		err = c.conflict(vmiKind, "VMI is paused")
	case noACPI && !has(v, vmi.ConditionAgentConnected):
		err = c.conflict(vmiKind, "VMI neither have the agent connected nor the ACPI feature enabled")
	}
	return done(err)
}

func reset(c *call) (reply, error) {
	v, err := c.vmi()
	if err == nil && v.Status.Phase != vmi.Running && v.Status.Phase != vmi.Scheduled {
		err = apierrors.NewBadRequest("Failed to reset non-running VMI with phase " + string(v.Status.Phase))
	}
	return done(err)
}

func freeze(c *call) (reply, error) {
	if _, err := c.running("VM is not running"); err != nil {
		return reply{}, err
	}
	var opts vmi.FreezeUnfreezeTimeout
	if err := c.options(&opts); err != nil {
		return reply{}, err
	}
	if opts.UnfreezeTimeout == nil {
		return reply{}, apierrors.NewInternalError(errTimeout)
	}
	return done(c.set(vmiKind, nil, "frozen", "status", "fsFreezeStatus"))
}

func unfreeze(c *call) (reply, error) {
	if _, err := c.running("VMI is not running"); err != nil {
		return reply{}, err
	}
	return done(c.set(vmiKind, nil, nil, "status", "fsFreezeStatus"))
}

// agent is the VMI of the call, whose agent is connected.
func (c *call) agent() (*vmi.VirtualMachineInstance, error) {
	v, err := c.running("VMI is not running")
	if err == nil && v.Status.Condition(vmi.ConditionAgentConnected) == nil {
		err = c.conflict(vmiKind, "VMI does not have guest agent connected")
	}
	return v, err
}

// What every guest of the fake has.
var (
	guestUsers = []vmi.VirtualMachineInstanceGuestOSUser{{UserName: "user", LoginTime: 1}}
	guestFiles = []vmi.VirtualMachineInstanceFileSystem{{
		DiskName: "vda1", MountPoint: "/", FileSystemType: "ext4", UsedBytes: 1 << 20, TotalBytes: 1 << 30,
		Disk: []vmi.VirtualMachineInstanceFileSystemDisk{{BusType: "virtio"}},
	}}
)

func guestInfo(c *call) (reply, error) {
	v, err := c.agent()
	if err != nil {
		return reply{}, err
	}
	return jsonReply(vmi.VirtualMachineInstanceGuestAgentInfo{
		GuestAgentVersion: "fake", Hostname: v.Name, OS: v.Status.GuestOSInfo, Timezone: "UTC, 0",
		UserList: guestUsers, FSInfo: vmi.VirtualMachineInstanceFileSystemInfo{Filesystems: guestFiles}, FSFreezeStatus: v.Status.FSFreezeStatus,
	})
}

func users(c *call) (reply, error) {
	if _, err := c.agent(); err != nil {
		return reply{}, err
	}
	return jsonReply(vmi.VirtualMachineInstanceGuestOSUserList{Items: guestUsers})
}

func fileSystems(c *call) (reply, error) {
	if _, err := c.agent(); err != nil {
		return reply{}, err
	}
	return jsonReply(vmi.VirtualMachineInstanceFileSystemList{Items: guestFiles})
}

func screenshot(c *call) (reply, error) {
	if _, err := c.graphics(); err != nil {
		return reply{}, err
	}
	var b bytes.Buffer
	err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 72, 40)))
	return reply{http.StatusOK, "image/png", b.Bytes()}, err
}
