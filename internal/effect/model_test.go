package effect

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// What libvirt or QEMU have for each field that names a model. What is not served is left
// out by asking the validation for it, so that no list here says what is.
var (
	videoTypes      = []string{"vga", "cirrus", "vmvga", "virtio", "qxl", "ramfb", "bochs", "gop", "none"}
	interfaceModels = []vmi.InterfaceModel{"virtio", "e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139", "vmxnet3", "usb-net", "i82551"}
	soundModels     = []vmi.SoundModel{"ich6", "ich7", "ich9", "ac97", "sb16", "es1370", "usb", "virtio"}
	diskBuses       = []vmi.DiskBus{"virtio", "sata", "scsi", "usb", "ide", "fdc"}
	inputBuses      = []vmi.InputBus{"virtio", "usb", "ps2"}
)

// variations are VMIs that name together every model, display and firmware.
func variations() map[string]vmitest.Option {
	all := map[string]vmitest.Option{
		"a random number generator, a watchdog, a panic device and no screen": func(v *vmi.VirtualMachineInstance) {
			d := &v.Spec.Domain.Devices
			d.Rng, d.AutoattachGraphicsDevice, d.PanicDevices = &vmi.Rng{}, new(false), []vmi.PanicDevice{{}}
			d.Watchdog = &vmi.Watchdog{Name: "w", WatchdogDevice: vmi.WatchdogDevice{I6300ESB: &vmi.I6300ESBWatchdog{Action: vmi.WatchdogReset}}}
		},
		"firmware UEFI": func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{SecureBoot: new(false)}}}
		},
		"firmware UEFI with secure boot": func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Features = &vmi.Features{SMM: &vmi.FeatureState{}}
			v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{}}}
		},
		"firmware with a TPM":     func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.TPM = &vmi.TPM{} },
		"board of an older image": func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Machine = &vmi.Machine{Type: "pc-q35-7.2"} },
	}
	for _, t := range videoTypes {
		all["video "+t] = func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.Video = &vmi.Video{Type: t} }
	}
	for _, m := range interfaceModels {
		all["interface "+string(m)] = func(v *vmi.VirtualMachineInstance) {
			i := &v.Spec.Domain.Devices.Interfaces[0]
			i.Model, i.BootOrder = m, new(uint(1)) // with its boot ROM
		}
	}
	for _, m := range soundModels {
		all["sound "+string(m)] = func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.Sound = &vmi.Sound{Name: "s", Model: m} }
	}
	for _, b := range inputBuses {
		all["input "+string(b)] = func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Devices.Inputs = []vmi.Input{{Name: "i", Type: vmi.InputTablet, Bus: b}}
		}
	}
	for _, b := range diskBuses {
		all["disk "+string(b)] = func(v *vmi.VirtualMachineInstance) {
			vmitest.WithEmptyDisk("one", "1Mi")(v)
			v.Spec.Domain.Devices.Disks[0].Disk = &vmi.DiskTarget{Bus: b}
		}
	}
	return all
}

// reaping is what process 1 of a pod does: libvirt takes a QEMU for running until it is
// reaped.
var reaping = sync.OnceValue(func() error {
	r, err := process.NewReaper()
	if err == nil {
		go r.Run(context.Background())
	}
	return err
})

// A file that is missing in an image, of a module of QEMU, of a boot ROM or of firmware, is
// seen when a device is made.
func TestEveryModelThatAFieldCanNameIsInTheImageThatIsChosenForIt(t *testing.T) {
	small, full := testenv.SmallLauncherRoot(t), testenv.LauncherRoot(t)
	if small == "" || full == "" {
		t.Skip("asks for the images: make test builds them")
	}
	images := map[string]*libvirt.Libvirt{"virt-launcher": newLibvirtOf(t, small), "virt-launcher-full": newLibvirtOf(t, full)}
	require.NoError(t, reaping())
	dir, err := os.MkdirTemp("/tmp", "model") // the user of the daemon can enter it
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one.img"), make([]byte, 1<<20), 0o666))
	require.NoError(t, os.Chmod(filepath.Join(dir, "one.img"), 0o666))
	tried := map[string]int{}
	for name, change := range variations() {
		v := vmitest.New(vmitest.WithMasquerade("default"), change)
		v.UID = "6f1c2a3e-9a43-4f0e-8d2b-0c54a7b1e9d2"
		if len(served.Faults(v, defaults.Profile{})) > 0 {
			continue
		}
		p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "virt-launcher", AllowEmulation: true}})
		if err != nil {
			require.ErrorIs(t, err, vmi.ErrInvalid, name)
			continue
		}
		kind, _, _ := strings.Cut(name, " ")
		tried[kind]++
		t.Run(name, func(t *testing.T) {
			backends := []network.Backend{""}
			if kind == "interface" {
				backends = append(backends, network.BackendUser)
			}
			for _, backend := range backends {
				starts(t, images[p.Spec.Containers[0].Image], defaults.Instance(v, defaults.Profile{}), dir, backend)
			}
		})
	}
	for kind, least := range map[string]int{"video": 5, "interface": 7, "sound": 2, "input": 2, "disk": 4, "firmware": 3, "board": 1} {
		require.GreaterOrEqual(t, tried[kind], least, "the VMIs of the kind %s that are served", kind)
	}
}

// starts starts the domain of a VMI and ends it.
func starts(t *testing.T, image *libvirt.Libvirt, v *vmi.VirtualMachineInstance, dir string, backend network.Backend) {
	t.Helper()
	require.NotNil(t, image)
	h := domain.Host{AllowEmulation: true, PrivateDir: dir, Disks: map[string]domain.Disk{}}
	for _, d := range v.Spec.Domain.Devices.Disks {
		h.Disks[d.Name] = domain.Disk{Attachment: storage.Attachment{Name: d.Name, Path: filepath.Join(dir, "one.img"), Format: storage.Raw}}
	}
	for _, i := range v.Spec.Domain.Devices.Interfaces {
		h.Interfaces = append(h.Interfaces, network.Attachment{Name: i.Name, MAC: "02:00:00:00:00:07", Backend: backend, Tap: "tap0"})
	}
	d, err := domain.Build(v, h)
	require.NoError(t, err)
	if d.OS.NVRam != nil {
		d.OS.NVRam.NVRam = filepath.Join(dir, "variables.fd")
		defer func() { _ = os.Remove(d.OS.NVRam.NVRam) }()
	}
	text, err := d.Marshal()
	require.NoError(t, err)
	running, err := image.DomainCreateXML(text, 0)
	require.NoError(t, err)
	state, _, err := image.DomainGetState(running, 0)
	require.NoError(t, err)
	require.Equal(t, int32(libvirt.DomainRunning), state)
	require.NoError(t, image.DomainDestroy(running))
}
