package fake

import (
	"bytes"
	"image"
	"image/png"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/jsonpatch"
	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
)

// What every guest of the fake has.
var (
	guestUsers = []vmi.VirtualMachineInstanceGuestOSUser{{UserName: "user", LoginTime: 1}}
	guestFiles = []vmi.VirtualMachineInstanceFileSystem{{
		DiskName: "vda1", MountPoint: "/", FileSystemType: "ext4", UsedBytes: 1 << 20, TotalBytes: 1 << 30,
		Disk: []vmi.VirtualMachineInstanceFileSystemDisk{{BusType: "virtio"}},
	}}
)

// played are what guests do when their launchers are called, by the name of the call, as
// their status shows it: an answer, and what is written. A guest that is called by another name
// does nothing, and answers with the zero value of the answer.
var played = map[string]func(*call) (any, []jsonpatch.Operation){
	"pause": func(c *call) (any, []jsonpatch.Operation) {
		c.VMI.Status.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: vmi.ReasonPausedByUser}, metav1.Now())
		return nil, set("conditions", c.VMI.Status.Conditions)
	},
	"unpause": func(c *call) (any, []jsonpatch.Operation) {
		c.VMI.Status.RemoveCondition(vmi.ConditionPaused)
		return nil, set("conditions", c.VMI.Status.Conditions)
	},
	"freeze":   func(*call) (any, []jsonpatch.Operation) { return nil, set("fsFreezeStatus", "frozen") },
	"unfreeze": func(*call) (any, []jsonpatch.Operation) { return nil, set("fsFreezeStatus", "") },
	"guestosinfo": func(c *call) (any, []jsonpatch.Operation) {
		return vmi.VirtualMachineInstanceGuestAgentInfo{
			GuestAgentVersion: "fake", Hostname: c.Name, OS: c.VMI.Status.GuestOSInfo, Timezone: "UTC, 0",
			UserList: guestUsers, FSInfo: vmi.VirtualMachineInstanceFileSystemInfo{Filesystems: guestFiles}, FSFreezeStatus: c.VMI.Status.FSFreezeStatus,
		}, nil
	},
	"userlist": func(*call) (any, []jsonpatch.Operation) {
		return vmi.VirtualMachineInstanceGuestOSUserList{Items: guestUsers}, nil
	},
	"filesystemlist": func(*call) (any, []jsonpatch.Operation) {
		return vmi.VirtualMachineInstanceFileSystemList{Items: guestFiles}, nil
	},
}

// set writes a field of the status.
func set(field string, value any) []jsonpatch.Operation {
	return []jsonpatch.Operation{jsonpatch.Add("/status/"+field, value)}
}

// play is what the guest answers to the call of its launcher.
func (c *call) play() (any, error) {
	do, ok := played[c.verb.Subresource]
	if !ok {
		if c.verb.Answer == nil {
			return nil, nil
		}
		return c.verb.Answer(), nil
	}
	answer, writes := do(c)
	if len(writes) == 0 {
		return answer, nil
	}
	return answer, c.patch(verb.Patch{Of: verb.OfVMI, UID: c.VMI.UID, Subresource: "status", Operations: writes})
}

// picture is a PNG file.
type picture []byte

func screenshot() (any, error) {
	var b bytes.Buffer
	err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 72, 40)))
	return picture(b.Bytes()), err
}
