//go:build pending

// Package pending keeps requirements in go.mod until their users land.
package pending

import (
	_ "github.com/containernetworking/plugins/pkg/ns"
	_ "github.com/google/go-containerregistry/pkg/name"
	_ "github.com/google/go-containerregistry/pkg/v1"
	_ "github.com/google/go-containerregistry/pkg/v1/empty"
	_ "github.com/google/go-containerregistry/pkg/v1/layout"
	_ "github.com/google/go-containerregistry/pkg/v1/mutate"
	_ "github.com/google/go-containerregistry/pkg/v1/tarball"
	_ "github.com/google/go-containerregistry/pkg/v1/types"
	_ "github.com/podvisor/podvisor/internal/golden"
	_ "github.com/podvisor/podvisor/internal/testenv"
	_ "github.com/podvisor/podvisor/vmi"
	_ "github.com/stretchr/testify/require"
	_ "github.com/vishvananda/netlink"
	_ "golang.org/x/sys/unix"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/client-go/dynamic"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "k8s.io/client-go/tools/watch"
	_ "sigs.k8s.io/yaml"
)
