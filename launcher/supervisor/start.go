package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"time"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/kvm"
	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// daemonTimeout is how long a start waits for the daemon.
	daemonTimeout = 30 * time.Second
	// createTimeout is how long QEMU may take to start.
	createTimeout = time.Minute
)

// created is what its creation makes known of a domain.
type created struct {
	emulated    bool
	machineType string
	disks       []protocol.Disk
	devices     []launcher.Device
	kernel      *vmi.KernelBootStatus
	vsockCID    uint32 // 0: none
	paused      bool   // the guest's processors are stopped
	attachments map[string]domain.Disk
	arrived     bool // from another launcher: it did not boot here
}

// note adds it to what was observed.
func (c created) note(s *protocol.State) {
	s.Emulated, s.Machine, s.Disks, s.KernelBoot, s.VSOCKCID = c.emulated, c.machineType, c.disks, c.kernel, c.vsockCID
}

// start makes everything that the domain needs and creates it. When ctx ends
// before the domain is created, it is not.
func (s *Supervisor) start(ctx context.Context, desired protocol.Desired) (created, error) {
	if err := s.clear(ctx); err != nil {
		return created{}, err
	}
	if s.config.RequireState {
		if err := missingState(&desired.Instance.Spec.Domain); err != nil {
			return created{}, err
		}
	}
	d, made, err := s.furnish(ctx, desired, nil)
	if err != nil {
		return created{}, err
	}
	conn, err := s.connection(ctx, daemonTimeout)
	if err != nil {
		return created{}, err
	}
	if err := ctx.Err(); err != nil {
		return created{}, err
	}
	made.paused = desired.Instance.Spec.StartsPaused()
	made, err = s.create(context.WithoutCancel(ctx), conn, d, made)
	if err != nil {
		return created{}, err
	}
	s.keepTPM(desired)
	return made, nil
}

// keepTPM notes that the state of the TPM is whole, which it is when the domain is created.
func (s *Supervisor) keepTPM(desired protocol.Desired) {
	if err := completeTPM(&desired.Instance.Spec.Domain); err != nil {
		s.config.Logger.Warn("the state of the TPM is not kept", "err", err)
	}
}

// furnish makes everything that the domain needs, and builds it. A disk is made as instead says
// of its attachment; nil: as it is.
func (s *Supervisor) furnish(ctx context.Context, desired protocol.Desired, instead func(storage.Attachment) storage.Attachment) (*libvirtxml.Domain, created, error) {
	fail := func(err error) (*libvirtxml.Domain, created, error) { return nil, created{}, err }
	host := s.host(desired)
	native := cmp.Or(desired.Instance.Spec.Architecture, runtime.GOARCH) == runtime.GOARCH
	host.KVM = native && hasKVM(s.config.Logger)
	if err := s.watchFilesystems(ctx, desired.Instance); err != nil {
		return fail(err)
	}
	place := s.place(desired.Settings)
	place.prepared, place.instead = s.take(ctx), instead
	disks, err := s.disks(ctx, desired.Instance, place, domain.Tagged(desired.Instance, host))
	if err != nil {
		return fail(err)
	}
	host.Disks = disks
	host.HostDevices = hostDevices(os.Environ())
	if host.CPUs, err = hostCPUs("/sys"); err != nil {
		return fail(err)
	}
	if host.MemoryNodes, err = memoryNodes("/proc/self/status"); err != nil {
		return fail(err)
	}
	host.BindMemory = choosesMemory()
	s.config.Logger.Info("the disks are made")
	spec := &desired.Instance.Spec.Domain
	if host.Kernel, err = findKernel(spec, s.config.Root); err != nil {
		return fail(err)
	}
	booted, err := kernelStatus(ctx, host.Kernel)
	if err != nil {
		return fail(err)
	}
	if err := makeVariables(&desired.Instance.Spec, s.config.Root); err != nil {
		return fail(err)
	}
	d, err := domain.Build(desired.Instance, host)
	if err != nil {
		return fail(err)
	}
	if qemu := process.QEMUPath(d.OS.Type.Arch); !exists(qemu) {
		return fail(fmt.Errorf("this image of virt-launcher has no QEMU for guests of %s (%s): %w", d.OS.Type.Arch, qemu, vmi.ErrInvalid))
	}
	if err := s.prepareTPM(spec, d.UUID); err != nil {
		return fail(err)
	}
	if err := s.serveAddresses(desired.Interfaces); err != nil {
		return fail(err)
	}
	s.config.Logger.Info("the domain is built")
	made := created{emulated: !host.KVM, machineType: d.OS.Type.Machine, disks: disksOf(desired.Instance, host), kernel: booted, attachments: disks}
	made.devices = actualDevices(d, desiredDevices(desired.Instance), made.disks)
	return d, made, nil
}

// host is what the pod offers to the domain that is desired, without what has to be
// observed or made.
func (s *Supervisor) host(desired protocol.Desired) domain.Host {
	return domain.Host{
		AllowEmulation: s.config.AllowEmulation,
		PrivateDir:     s.privateDir(),
		Root:           s.config.Root,
		ConsoleLog:     s.consolePath(),
		Interfaces:     desired.Interfaces,
		Settings:       desired.Settings,
		Places:         domain.StatusPlaces(desired.Instance),
		Parts:          s.config.Parts,
	}
}

// connection waits for the daemon, for as long as most.
func (s *Supervisor) connection(ctx context.Context, most time.Duration) (*libvirt.Connection, error) {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	conn, err := s.session.connection(limited)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("wait for the libvirt daemon: no answer within %s, its last output is %q: %w", most, s.daemon.Output(), context.DeadlineExceeded)
	}
	return conn, err
}

// clear ends what the start before left, if there was one: a daemon that was
// slow or ended during it may have created a domain of which the launcher knows
// nothing, and which would keep the disks open.
func (s *Supervisor) clear(ctx context.Context) error {
	if !s.tried {
		return nil
	}
	if _, err := s.connection(ctx, daemonTimeout); err != nil {
		return err
	}
	if err := s.destroy(ctx); err != nil {
		return fmt.Errorf("end what the start before left: %w", err)
	}
	s.facts.change((*facts).forget)
	return nil
}

// create creates the domain. ctx does not end: a call to libvirt cannot be taken
// back, and a domain that runs must be known.
func (s *Supervisor) create(ctx context.Context, conn *libvirt.Connection, d *libvirtxml.Domain, made created) (created, error) {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	s.tried = true
	create := conn.Create
	if made.paused {
		create = conn.CreatePaused
	}
	if err := create(ctx, d); err != nil {
		_ = s.destroy(context.WithoutCancel(ctx)) // the next attempt does it again
		return created{}, s.inSpec(ctx, conn, d, err)
	}
	if now, err := conn.Describe(ctx, d.Name); err == nil {
		made = made.described(now)
	}
	s.watchQEMU(d.Name)
	return made, nil
}

// described adds what libvirt says of the domain.
func (c created) described(now *libvirtxml.Domain) created {
	if now.OS != nil && now.OS.Type != nil {
		c.machineType = now.OS.Type.Machine
	}
	c.devices = actualDevices(now, c.devices, c.disks)
	c.vsockCID = domain.VSOCKCID(now)
	return c
}

// inSpec is the error of a domain that cannot be created. If QEMU does not have its
// machine type, the error names those that it has, which libvirt's does not.
func (s *Supervisor) inSpec(ctx context.Context, conn *libvirt.Connection, d *libvirtxml.Domain, err error) error {
	if errors.Is(err, libvirt.ErrProcessor) {
		return fmt.Errorf("spec.domain.cpu: %w: name a model and features that nodes have by their labels %s<model> and %s<feature>, or set model to %s",
			err, vmi.CPUModelLabelPrefix, vmi.CPUFeatureLabelPrefix, vmi.CPUModelHost)
	}
	if !errors.Is(err, vmi.ErrInvalid) {
		return err
	}
	have, unknown := conn.MachineTypes(ctx, d.OS.Type.Arch)
	if unknown != nil {
		s.config.Logger.Warn("the machine types of QEMU are not known", "err", unknown)
		return err
	}
	if fault := domain.MachineTypeFault(d.OS.Type.Machine, have); fault != nil {
		return fault
	}
	return err
}

// watchQEMU notes the exit status of a domain's QEMU.
func (s *Supervisor) watchQEMU(name string) {
	pid, err := s.daemon.QEMU(name)
	if err != nil {
		s.config.Logger.Warn("QEMU's process is not known", "err", err)
		return
	}
	exited := s.reaper.Exited(pid)
	s.work.Go(func() {
		select {
		case status := <-exited:
			s.ended(func(f *facts) { f.status = &status })
		case <-s.over:
		}
	})
}

// hasKVM says that the pod has a /dev/kvm and that a guest runs on it: there are
// nodes where the device opens and no guest boots.
func hasKVM(log *slog.Logger) bool {
	const device = "/dev/kvm"
	err := kvm.Probe(device)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the guest is emulated, which is slow: KVM cannot be used", "err", err)
	}
	return err == nil
}
