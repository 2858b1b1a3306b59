package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// defaultCount is how many pods of a node may share a device: more than a
// kubelet runs.
const defaultCount = 1000

// registerTimeout is how long the kubelet may take to answer.
const registerTimeout = 10 * time.Second

// uninstalledTimeout is how long Uninstalled may take.
const uninstalledTimeout = 5 * time.Second

// Delays between two attempts to register.
const (
	firstDelay = 50 * time.Millisecond
	lastDelay  = time.Second
)

// checkPeriod is the time between two checks of the sockets, and of what is offered. The
// first are for a kubelet that drops the plugin without closing its connection.
const checkPeriod = time.Second

// Config is what Plugins need.
type Config struct {
	// Devices are offered to pods. None: the node has none to offer.
	Devices []Device
	// PluginDir is the kubelet's folder of device plugins, usually
	// /var/lib/kubelet/device-plugins. Required.
	PluginDir string
	// CDIDir is the container runtime's folder of CDI specifications, usually
	// /var/run/cdi. Required.
	CDIDir string
	// Count is how many times each device is offered. 0: 1000.
	Count int
	// Offered says whether a device is offered now. It is asked again every second, from
	// several goroutines. Pods that have a device keep it when it is not offered any more.
	// Nil: each is.
	Offered func(Device) bool
	// Changed is called after each change of what [Plugins.Registered] answers.
	// Nil: nothing is.
	Changed func()
	// Uninstalled returns, at the end, whether the CDI specification is to be removed:
	// a pod that starts while the handler is only restarted needs it. Nil: it is not.
	Uninstalled func(context.Context) bool
	// Logger takes a line for each registration and its loss. Nil: nothing is
	// logged.
	Logger *slog.Logger
}

// Plugins are the device plugins of the node.
type Plugins struct {
	config     Config
	registered map[string]*atomic.Bool
}

// New makes Plugins. They start with Run.
func New(c Config) *Plugins {
	if c.Count == 0 {
		c.Count = defaultCount
	}
	if c.Offered == nil {
		c.Offered = func(Device) bool { return true }
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Plugins{config: c, registered: map[string]*atomic.Bool{}}
	for _, d := range c.Devices {
		p.registered[d.Name] = &atomic.Bool{}
	}
	return p
}

// Registered reports whether the device of this name is registered with the
// kubelet, which can then give it to pods.
func (p *Plugins) Registered(name string) bool {
	r := p.registered[name]
	return r != nil && r.Load()
}

// Run offers the devices until ctx ends, through all restarts of the kubelet.
// It returns an error only if it cannot begin, or cannot remove what it must. A CDI
// specification or a socket that is changed or replaced meanwhile is made again.
func (p *Plugins) Run(ctx context.Context) error {
	spec, err := CDI(p.config.Devices)
	if err != nil {
		return fmt.Errorf("encode the CDI specification: %w", err)
	}
	err = cmp.Or(removeUnfinished(p.config.CDIDir), writeCDI(p.config.CDIDir, spec))
	if errors.Is(err, os.ErrNotExist) {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.keepCDI(ctx, spec, err) })
	for _, d := range p.config.Devices {
		wg.Go(func() { p.keep(ctx, d) })
	}
	<-ctx.Done()
	wg.Wait()
	if p.config.Uninstalled == nil {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), uninstalledTimeout)
	defer cancel()
	if !p.config.Uninstalled(last) {
		return nil
	}
	p.config.Logger.Info("remove the CDI specification", "dir", p.config.CDIDir)
	return removeCDI(p.config.CDIDir)
}

// keepCDI writes the CDI specification again whenever it is not as it was written.
// failed is the error of the last attempt.
func (p *Plugins) keepCDI(ctx context.Context, spec []byte, failed error) {
	check := time.NewTicker(checkPeriod)
	defer check.Stop()
	for {
		if failed != nil {
			p.config.Logger.Warn("write the CDI specification, will retry", "err", failed)
		}
		select {
		case <-ctx.Done():
			return
		case <-check.C:
		}
		if failed = nil; !cdiIsWritten(p.config.CDIDir, spec) {
			if failed = writeCDI(p.config.CDIDir, spec); failed == nil {
				p.config.Logger.Warn("the CDI specification was changed or removed; it is written again", "dir", p.config.CDIDir)
			}
		}
	}
}

// keep offers a device until ctx ends, and again whenever that fails.
func (p *Plugins) keep(ctx context.Context, d Device) {
	delay := firstDelay
	for p.awaitOffered(ctx, d) {
		registered, err := p.offer(ctx, d)
		if ctx.Err() != nil {
			return
		}
		switch {
		case registered && !p.config.Offered(d):
			delay = firstDelay
			p.config.Logger.Info("the device is not offered any more", "device", d.Name)
		case registered:
			delay = firstDelay
			p.config.Logger.Info("the kubelet dropped the device, will register again", "device", d.Name)
		}
		if err != nil {
			p.config.Logger.Warn("offer the device, will retry", "device", d.Name, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
			delay = min(2*delay, lastDelay)
		}
	}
}

// awaitOffered waits until the device is to be offered. It returns false if ctx ends
// before.
func (p *Plugins) awaitOffered(ctx context.Context, d Device) bool {
	check := time.NewTicker(checkPeriod)
	defer check.Stop()
	for !p.config.Offered(d) {
		select {
		case <-ctx.Done():
			return false
		case <-check.C:
		}
	}
	return true
}

// offer serves a device, registers it and returns when ctx ends, the kubelet has
// dropped it, or it is not to be offered any more.
func (p *Plugins) offer(ctx context.Context, d Device) (registered bool, err error) {
	socket := filepath.Join(p.config.PluginDir, d.socket())
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err // what an earlier handler left
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return false, err
	}
	s, answers := grpc.NewServer(), newPlugin(d, p.config.Count)
	api.RegisterDevicePluginServer(s, answers)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { // Stop closes the listener, which removes the socket
		close(answers.gone)
		s.Stop()
		err = errors.Join(err, <-served)
	}()

	kubelet, err := identify(p.kubelet())
	if err != nil {
		return false, err
	}
	ours, err := identify(socket)
	if err != nil {
		return false, err
	}
	if err := p.register(ctx, d); err != nil {
		return false, err
	}
	p.set(d, true)
	defer p.set(d, false)
	p.config.Logger.Info("registered with the kubelet", "device", d.Name, "resource", d.Resource)
	check := time.NewTicker(checkPeriod)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case <-answers.dropped:
			return true, nil
		case <-check.C:
			if !kubelet.still(p.kubelet()) || !ours.still(socket) || !p.config.Offered(d) {
				return true, nil
			}
		}
	}
}

func (p *Plugins) set(d Device, registered bool) {
	p.registered[d.Name].Store(registered)
	p.config.Changed()
}

// kubelet is the socket at which the kubelet takes registrations.
func (p *Plugins) kubelet() string {
	return filepath.Join(p.config.PluginDir, filepath.Base(api.KubeletSocket))
}

func (d Device) socket() string { return "kubevirt-" + d.Name + ".sock" }

func (p *Plugins) register(ctx context.Context, d Device) error {
	c, err := grpc.NewClient("unix://"+p.kubelet(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to the kubelet: %w", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	_, err = api.NewRegistrationClient(c).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: d.socket(), ResourceName: d.Resource, Options: &api.DevicePluginOptions{},
	})
	if err != nil {
		return fmt.Errorf("register %s: %w", d.Resource, err)
	}
	return nil
}
