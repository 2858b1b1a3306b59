package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/libvirt"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/dhcp"
	"github.com/podvisor/podvisor/vmi"
)

// instance is the machine as far as a launcher knows it from its start.
func (s *Supervisor) instance() *vmi.VirtualMachineInstance {
	return &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: s.config.Namespace, Name: s.config.Name, UID: s.config.UID}}
}

func (s *Supervisor) domainName() string { return domain.Name(s.instance()) }

// consolePath is the pipe that QEMU writes the serial console to.
func (s *Supervisor) consolePath() string {
	return filepath.Join(domain.PrivateDir(s.instance()), "virt-serial0-log")
}

// listen opens the control socket. Everybody may connect who can reach it: the
// handler has no capability to pass a mode, and the folder is private to it and
// the pod.
func listen() (net.Listener, error) {
	path := filepath.Join(vmi.SocketsDir, vmi.LauncherSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// publish tells the handler a state that is new.
func (s *Supervisor) publish(state control.State) {
	if !reflect.DeepEqual(state, s.told) {
		s.told = state
		s.server.Publish(state)
	}
}

// connected looks at the domain after the daemon was started again: what
// happened in between was told to nobody.
func (s *Supervisor) connected(ctx context.Context, c *libvirt.Connection) {
	state, err := c.State(ctx, s.domainName())
	s.facts.change(func(f *facts) {
		if f.domain != launcher.Running && f.domain != launcher.Paused {
			return
		}
		s.agent.notice()
		switch {
		case err == nil && state == libvirt.Running:
			f.domain = launcher.Running
		case err == nil && state == libvirt.Paused:
			f.domain = launcher.Paused
		case errors.Is(err, libvirt.ErrNotFound):
			// No event will come any more.
			time.AfterFunc(forStatus, func() {
				s.facts.change(func(f *facts) {
					if f.status == nil && f.event == "" {
						f.event = libvirt.Failed
					}
					s.gone(f)
				})
			})
		}
	})
}

// happened takes an event of the daemon.
func (s *Supervisor) happened(e libvirt.Event) {
	if e.Domain != s.domainName() {
		return
	}
	s.config.Logger.Debug("libvirt says", "event", e.Kind)
	switch e.Kind {
	case libvirt.Started:
		s.facts.change(func(f *facts) {
			if f.domain == launcher.Starting {
				f.forget() // events come in order: those before were about another
			}
		})
	case libvirt.Suspended:
		s.facts.change(func(f *facts) { f.turn(true) })
	case libvirt.Resumed:
		s.facts.change(func(f *facts) { f.turn(false) })
	case libvirt.Interrupted:
		s.facts.change(func(f *facts) { f.interrupted = true })
	case libvirt.PoweredOff, libvirt.Destroyed, libvirt.Failed:
		s.ended(func(f *facts) { f.event = e.Kind })
	case libvirt.AgentChanged:
		s.agent.notice()
	}
}

// serveAddresses offers the guest its addresses until the launcher ends. An
// interface that is served already stays so.
func (s *Supervisor) serveAddresses(interfaces []network.Attachment) error {
	var resolver dhcp.Resolver
	if b, err := os.ReadFile("/etc/resolv.conf"); err == nil {
		resolver = dhcp.ParseResolvConf(b)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, i := range interfaces {
		if i.DHCP == nil || s.addresses[i.Name] {
			continue
		}
		s.addresses[i.Name] = true
		s.work.Go(func() {
			if err := dhcp.Serve(s.inner, *i.DHCP, resolver, s.config.Logger); err != nil {
				s.config.Logger.Error("the guest is offered no address", "interface", i.Name, "err", err)
			}
		})
	}
	return nil
}

// conclude leaves the end where the kubelet finds it.
func (s *Supervisor) conclude(end control.End) {
	if s.config.TerminationLog == "" {
		return
	}
	text := fmt.Sprintf("%s: %s\n", end.Reason, oneLine(end.Message))
	if err := os.WriteFile(s.config.TerminationLog, []byte(text), 0o644); err != nil {
		s.config.Logger.Debug("no termination log", "err", err)
	}
}

// within waits for done, but no longer than most.
func within(done <-chan struct{}, most time.Duration) {
	select {
	case <-done:
	case <-time.After(most):
	}
}
