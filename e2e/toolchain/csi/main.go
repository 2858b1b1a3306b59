package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driverName is the driver's name in StorageClass, CSIDriver and CSINode.
const driverName = "local.cluster.podvisor.io"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		klog.ErrorS(err, "csi")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 6 && args[0] == "controller":
		return runController(ctx, access{server: args[1], ca: args[2], cert: args[3], key: args[4]}, args[5])
	case len(args) == 4 && args[0] == "node":
		return runNode(ctx, node{name: args[1], volumes: args[3]}, args[2])
	}
	return errors.New("usage: csi controller URL CA CERT KEY DIR | csi node NAME KUBELET DIR")
}

func runController(ctx context.Context, a access, dir string) error {
	c := &controller{dir: dir}
	if err := c.prepare(); err != nil {
		return err
	}
	socket := filepath.Join(dir, "csi.sock")
	ended, err := serve(socket, func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, identity{})
		csi.RegisterControllerServer(s, c)
	})
	if err != nil {
		return err
	}
	if err := runSidecars(ctx, a, socket); err != nil {
		return err
	}
	return wait(ctx, ended)
}

// runNode serves the kubelet whose folder is dir.
func runNode(ctx context.Context, n node, dir string) error {
	if err := n.prune(); err != nil {
		return err
	}
	socket := filepath.Join(dir, "plugins", driverName, "csi.sock")
	ended, err := serve(socket, func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, identity{})
		csi.RegisterNodeServer(s, n)
	})
	if err != nil {
		return err
	}
	registered, err := serve(filepath.Join(dir, "plugins_registry", driverName+"-reg.sock"), func(s *grpc.Server) {
		registration.RegisterRegistrationServer(s, registrar{endpoint: socket})
	})
	if err != nil {
		return err
	}
	go func() { ended <- <-registered }()
	return wait(ctx, ended)
}

// serve serves at a Unix socket, which it makes anew.
func serve(socket string, register func(*grpc.Server)) (chan error, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(socket); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", socket, err)
	}
	s := grpc.NewServer(grpc.UnaryInterceptor(logged))
	register(s)
	ended := make(chan error, 2)
	go func() { ended <- s.Serve(l) }()
	return ended, nil
}

func wait(ctx context.Context, ended <-chan error) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// logged writes a line for each call that changes something or fails.
func logged(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	resp, err := next(ctx, req)
	if err != nil {
		klog.ErrorS(err, "call failed", "method", info.FullMethod, "request", fmt.Sprint(req))
	} else {
		klog.V(2).InfoS("call", "method", info.FullMethod, "request", fmt.Sprint(req))
	}
	return resp, err
}

// identity says what the driver can do.
type identity struct {
	csi.UnimplementedIdentityServer
}

// GetPluginInfo names the driver.
func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: "v1"}, nil
}

// Probe says that the driver is ready.
func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// GetPluginCapabilities says that volumes are made here and expanded while they are used.
func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}}},
	}}, nil
}

// registrar answers the kubelet, which finds its socket.
type registrar struct {
	registration.UnimplementedRegistrationServer
	endpoint string
}

// GetInfo says where the driver is.
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: driverName, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus logs why the kubelet does not take the driver; it asks again.
func (registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		klog.ErrorS(errors.New(s.Error), "register with the kubelet")
	}
	return &registration.RegistrationStatusResponse{}, nil
}
