//go:build pending

// Package pending keeps requirements in go.mod until their users land.
package pending

import (
	_ "github.com/containernetworking/plugins/pkg/ns"
	_ "github.com/digitalocean/go-libvirt"
	_ "github.com/digitalocean/go-libvirt/libvirttest"
	_ "github.com/digitalocean/go-libvirt/socket/dialers"
	_ "github.com/diskfs/go-diskfs"
	_ "github.com/insomniacslk/dhcp/dhcpv4/server4"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/stretchr/testify/require"
	_ "github.com/vishvananda/netlink"
	_ "golang.org/x/sys/unix"
	_ "gopkg.in/evanphx/json-patch.v4"
	_ "k8s.io/client-go/dynamic/fake"
	_ "k8s.io/client-go/kubernetes/fake"
	_ "k8s.io/client-go/tools/leaderelection"
	_ "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	_ "libvirt.org/go/libvirtxml"
	_ "sigs.k8s.io/yaml"
)
