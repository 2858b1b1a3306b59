package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/kvm"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/libvirt"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// daemonPatience is how long a start waits for the daemon.
	daemonPatience = 30 * time.Second
	// createPatience is how long QEMU may take to start.
	createPatience = time.Minute
)

// start makes everything that the domain needs and creates it. When ctx ends
// before the domain is created, it is not.
func (s *Supervisor) start(ctx context.Context, desired control.Desired) (control.State, error) {
	host := domain.Host{
		KVM:            hasKVM(s.config.Logger),
		AllowEmulation: s.config.AllowEmulation,
		ConsoleLog:     s.consolePath(),
		Interfaces:     desired.Interfaces,
		Settings:       desired.Settings,
		Places:         domain.StatusPlaces(desired.Instance),
	}
	if err := s.clear(ctx); err != nil {
		return control.State{}, err
	}
	disks, err := makeDisks(ctx, desired.Instance, "")
	if err != nil {
		return control.State{}, err
	}
	host.Disks = disks
	s.config.Logger.Debug("the disks are made")
	d, err := domain.Build(desired.Instance, host)
	if err != nil {
		return control.State{}, err
	}
	if err := s.serveAddresses(desired.Interfaces); err != nil {
		return control.State{}, err
	}
	conn, err := s.patiently(ctx, daemonPatience)
	if err != nil {
		return control.State{}, err
	}
	if err := ctx.Err(); err != nil {
		return control.State{}, err
	}
	s.config.Logger.Debug("the daemon is ready and the domain is built")
	return s.create(context.WithoutCancel(ctx), conn, d, control.State{
		Emulated: !host.KVM,
		Machine:  d.OS.Type.Machine,
		Disks:    disksOf(desired.Instance, host),
	})
}

// patiently waits for the daemon, for as long as most.
func (s *Supervisor) patiently(ctx context.Context, most time.Duration) (*libvirt.Connection, error) {
	patient, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	conn, err := s.session.connection(patient)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("wait for the libvirt daemon: it has not answered within %s and last said %q", most, s.daemon.said())
	}
	return conn, err
}

// clear ends what the start before left, if there was one: a daemon that was
// slow or died over it may have made a domain and told nobody, which would hold
// the disks for ever.
func (s *Supervisor) clear(ctx context.Context) error {
	if !s.tried {
		return nil
	}
	if _, err := s.patiently(ctx, daemonPatience); err != nil {
		return err
	}
	if err := s.destroy(ctx); err != nil {
		return fmt.Errorf("end what the start before left: %w", err)
	}
	s.facts.change((*facts).forget)
	return nil
}

// create creates the domain. ctx does not end: what libvirt was told cannot be
// taken back, and a domain that runs must be known.
func (s *Supervisor) create(ctx context.Context, conn *libvirt.Connection, d *libvirtxml.Domain, state control.State) (control.State, error) {
	ctx, cancel := context.WithTimeout(ctx, createPatience)
	defer cancel()
	s.tried = true
	if err := conn.Create(ctx, d); err != nil {
		_ = s.destroy(context.WithoutCancel(ctx)) // the next try does it again
		return control.State{}, s.explained(ctx, conn, d, err)
	}
	if m, err := conn.Machine(ctx, d.Name); err == nil && m != "" {
		state.Machine = m
	}
	s.watchQEMU(d.Name)
	return state, nil
}

// explained is the error of a domain that cannot be made, in the words of the
// spec if its machine type is to blame: libvirt does not name those that there
// are, and of some only says what they lack.
func (s *Supervisor) explained(ctx context.Context, conn *libvirt.Connection, d *libvirtxml.Domain, err error) error {
	if !errors.Is(err, vmi.ErrInvalid) {
		return err
	}
	have, unknown := conn.Machines(ctx, d.OS.Type.Arch)
	if unknown != nil {
		s.config.Logger.Warn("the machine types of QEMU are not known", "err", unknown)
		return err
	}
	if fault := domain.MachineFault(d.OS.Type.Machine, have); fault != nil {
		return fault
	}
	return err
}

// watchQEMU notes the exit status of a domain's QEMU.
func (s *Supervisor) watchQEMU(name string) {
	pid, err := s.qemu(name)
	if err != nil {
		s.config.Logger.Warn("QEMU's process is not known", "err", err)
		return
	}
	exited := s.reaper.exited(pid)
	s.work.Go(func() {
		select {
		case status := <-exited:
			s.ended(func(f *facts) { f.status = &status })
		case <-s.over:
		}
	})
}

// qemu is the process of a domain's QEMU.
func (s *Supervisor) qemu(name string) (int, error) {
	b, err := os.ReadFile(s.daemon.pidFile(name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// hasKVM says that the pod has a /dev/kvm and that a guest runs on it: there are
// nodes where the device opens and no guest boots.
func hasKVM(log *slog.Logger) bool {
	const device = "/dev/kvm"
	err := kvm.Probe(device)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("KVM is not used", "err", err)
	}
	return err == nil
}
