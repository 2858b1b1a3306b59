package supervisor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/network/dhcp"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// instance is the VMI as far as a launcher knows it from its start.
func (s *Supervisor) instance() *vmi.VirtualMachineInstance {
	return &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: s.config.Namespace, Name: s.config.Name, UID: s.config.UID}}
}

func (s *Supervisor) domainName() string { return domain.Name(s.instance()) }

func (s *Supervisor) privateDir() string {
	return filepath.Join(s.config.Root, domain.PrivateDir(s.instance()))
}

// consolePath is the pipe that QEMU writes the serial console to.
func (s *Supervisor) consolePath() string { return filepath.Join(s.privateDir(), "virt-serial0-log") }

// listen opens the control socket. Its mode lets all users connect: the handler has
// no capability to override a mode, and the folder is private to it and the pod.
func listen(root string) (net.Listener, error) {
	path := filepath.Join(root, vmi.SocketsDir, vmi.LauncherSocket)
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

// publish publishes a state that differs from the one before.
func (s *Supervisor) publish(state protocol.State) {
	if !reflect.DeepEqual(state, s.published) {
		if state.Phase == protocol.Running && !s.ran && s.config.Started != nil {
			s.config.Started()
		}
		s.published, s.ran = state, s.ran || state.Phase == protocol.Running
		s.server.Publish(state)
	}
}

// typeIn types into the guest's serial port what is read from the input, to its end.
// What is typed while there is no port, before the domain is created, is dropped.
func (s *Supervisor) typeIn(ctx context.Context) {
	b := make([]byte, 4<<10)
	for {
		n, err := s.config.Input.Read(b)
		if n > 0 {
			if err := s.serial.Type(ctx, b[:n]); err != nil {
				s.config.Logger.Debug("type into the guest", "err", err)
			}
		}
		if err != nil {
			s.config.Logger.Debug("nothing more can be typed into the guest", "err", err)
			return
		}
	}
}

// listenTimeout is how long a start waits until the guest's questions for addresses are
// answered. It goes on then, since they are as soon as they can be.
const listenTimeout = 5 * time.Second

// serveAddresses offers the guest its addresses until the launcher ends, and returns when
// its questions are answered. An interface that is served already stays so.
func (s *Supervisor) serveAddresses(interfaces []network.Attachment) error {
	server := dhcp.Server{Logger: s.config.Logger}
	if b, err := os.ReadFile("/etc/resolv.conf"); err == nil {
		server.Resolver = dhcp.ParseResolvConf(b)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var started []<-chan struct{}
	for _, i := range interfaces {
		if s.addresses[i.Name] {
			continue
		}
		s.addresses[i.Name] = true
		if i.DHCP != nil {
			started = append(started, s.serveAddress(i.Name, server, func(d dhcp.Server) error { return d.Serve(s.inner, *i.DHCP) }))
		}
		if i.DHCP6 != nil {
			started = append(started, s.serveAddress(i.Name, server, func(d dhcp.Server) error { return d.Serve6(s.inner, *i.DHCP6) }))
		}
	}
	end := time.Now().Add(listenTimeout)
	for _, listening := range started {
		within(listening, time.Until(end))
	}
	return nil
}

// serveAddress calls serve until the launcher ends. The channel is closed when the guest's
// questions are answered, or never will be.
func (s *Supervisor) serveAddress(iface string, server dhcp.Server, serve func(dhcp.Server) error) <-chan struct{} {
	listening := make(chan struct{})
	done := sync.OnceFunc(func() { close(listening) })
	server.Listening = done
	s.work.Go(func() {
		defer done()
		if err := serve(server); err != nil {
			s.config.Logger.Error("the guest is offered no address", "interface", iface, "err", err)
		}
	})
	return listening
}

// conclude writes the end where the kubelet reads it, for virt-controller.
func (s *Supervisor) conclude(end protocol.End) {
	if s.config.TerminationLog == "" {
		return
	}
	if err := os.WriteFile(s.config.TerminationLog, []byte(end.Termination()), 0o644); err != nil {
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
