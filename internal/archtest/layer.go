package archtest

import (
	"slices"
	"strings"
)

// Layer is what a package may do.
type Layer string

// The layers.
const (
	// Core computes and touches nothing.
	Core Layer = "core"
	// Edge touches one outside thing.
	Edge Layer = "edge"
	// Controller joins cores and edges to a loop.
	Controller Layer = "controller"
	// Binary reads flags and runs a controller.
	Binary Layer = "binary"
	// Internal is code without meaning in the domain of the module.
	Internal Layer = "internal"
)

// Unknown is the layer of a package that is in no list. It is a fault.
const Unknown Layer = ""

// core are the packages of the core outside the trees scheduler and vmi, in which every
// package is core that is in no other list: a kind of object adds packages there. Edges
// inside a core package are files, listed in edgeFiles.
var core = map[string]bool{
	".":                           true,
	"handler":                     true,
	"internal/handler/capability": true,
	"internal/handler/metrics":    true,
	"internal/jsonpatch":          true,
	"internal/series":             true,
	"internal/shorten":            true,
	"launcher":                    true,
	"launcher/domain":             true,
	"launcher/protocol":           true,
	"network":                     true,
	"network/cni":                 true,
	"internal/network/frame":      true,
	"internal/network/nft":        true,
	"storage":                     true,
	"storage/cloudinit":           true,
	"internal/storage/credential": true,
	"storage/volume":              true,
}

// edges are the packages that touch one outside thing.
var edges = map[string]bool{
	"vmi/client": true, "vmi/client/informer": true, "vmi/client/fake": true,
	"internal/handler/socket": true, "internal/handler/device": true, "internal/handler/node": true, "handler/stream": true, "handler/scrape": true, "scheduler/guest": true,
	"internal/launcher/console": true, "launcher/terminal": true, "launcher/control": true, "internal/launcher/forward": true,
	"internal/launcher/libvirt": true, "internal/launcher/process": true, "internal/launcher/share": true,
	"internal/network/link": true, "internal/network/dhcp": true, "internal/network/networktest": true,
	"internal/storage/image": true, "internal/storage/probe": true,
}

// controllers are the packages that join cores and edges.
var controllers = map[string]bool{
	"scheduler/controller": true, "scheduler/sizing": true, "handler/controller": true, "handler/host": true, "launcher/supervisor": true, "scheduler/admission": true,
	"internal/scheduler/authority": true, "internal/scheduler/leader": true, "scheduler/subresource": true, "scheduler/subresource/frontproxy": true, "vmi/config/live": true,
}

// isCore reports whether the package is of the core.
func isCore(p string) bool {
	return core[p] || (tree(p) == "scheduler" || tree(p) == "vmi") && !edges[p] && !controllers[p]
}

// edgeFiles are the files of core packages that are the edge beside their core.
var edgeFiles = map[string]bool{
	"internal/network/nft/apply.go": true,
}

// LayerOf says which layer the file is in.
func LayerOf(f File) Layer {
	p := f.Package()
	switch {
	case edgeFiles[f.Path]:
		return Edge
	case isCore(p):
		return Core
	case edges[p]:
		return Edge
	case controllers[p]:
		return Controller
	case strings.HasPrefix(p, "cmd/"), strings.HasPrefix(p, "examples/"), strings.HasPrefix(p, "images/"):
		return Binary
	case tree(p) == "internal":
		return Internal
	}
	return Unknown
}

// outside are imports that a core package must not have: they block, touch the
// node or the cluster, or log.
var outside = []string{
	"context", "os", "io/fs", "net", "syscall", "log",
	"golang.org/x/sys", "k8s.io/client-go", "k8s.io/klog",
	"github.com/vishvananda/netlink", "github.com/digitalocean/go-libvirt", "github.com/google/nftables", "github.com/containernetworking/plugins",
}

// forbidden returns why a file must not have the import, or "".
func forbidden(f File, imported string) string {
	own, isOwn := strings.CutPrefix(imported, Module+"/")
	p := f.Package()
	switch layer := LayerOf(f); {
	case layer == Core && !isOwn && matches(outside, imported):
		return "core computes and touches nothing"
	case layer == Core && isOwn && !isCore(own) && own != "internal/golden":
		return "core imports only core"
	case p == "vmi/client/informer" && own == "vmi/client": // its factory makes the informers of a client
	case layer == Edge && isOwn && !isCore(own) && tree(own) != "internal":
		return "an edge imports core and one outside thing, never another edge or a controller"
	case strings.HasPrefix(imported, "k8s.io/klog") && layer != Binary:
		return "klog is named in cmd only"
	case p == "vmi" && isOwn:
		return "vmi imports nothing of this module"
	case isOwn && tree(p) == "vmi" && tree(own) != "vmi" && tree(own) != "internal":
		return "nothing under vmi imports another tree"
	case isOwn && (p == "vmi/client" || p == "vmi/client/informer") && !slices.Contains(ofClients, own):
		return "a program that reads and writes objects links neither defaults nor validation"
	case isOwn && p == "launcher/protocol" && side(own) != "":
		return "the protocol is on its own: all three processes have it"
	case isOwn && apart(p, own):
		return "scheduler, handler and launcher do not import each other"
	case isOwn && strings.HasPrefix(p, "examples/") && strings.HasPrefix(own, "internal/"):
		return "an example is copied: it imports what its reader may import"
	case isOwn && strings.HasPrefix(own, "cmd/"):
		return "nothing imports a binary"
	}
	return ""
}

// ofClients are the packages that the clients import.
var ofClients = []string{"vmi", "vmi/decode", "internal/vmi/jsontree", "internal/vmi/quantity", "internal/websocket"}

// apart reports whether the packages belong to different processes. All share the
// launcher's protocol, and only the handler's controller uses its transport.
func apart(p, own string) bool {
	if own == "launcher/protocol" || p == "handler/controller" && own == "launcher/control" {
		return false
	}
	return side(p) != "" && side(own) != "" && side(p) != side(own)
}

// side is the process that a package belongs to, or "" if it is of all.
func side(p string) string {
	switch t := tree(p); t {
	case "scheduler", "handler", "launcher":
		return t
	}
	return ""
}

// tree is the tree that a package belongs to: its top-level folder, or that below internal
// of a package that only this module imports.
func tree(p string) string {
	first, rest, _ := strings.Cut(p, "/")
	if below, _, _ := strings.Cut(rest, "/"); first == "internal" && slices.Contains(trees, below) {
		return below
	}
	return first
}

// trees are the trees of the domain. What no importer needs has the same path below internal.
var trees = []string{"vmi", "scheduler", "handler", "launcher", "network", "storage"}

// matches says that the import is one of the list or below it. What holds values only is
// free, as net/netip and the apply configurations of client-go.
func matches(list []string, imported string) bool {
	if imported == "net/netip" || imported == "net/url" || strings.HasPrefix(imported, "k8s.io/client-go/applyconfigurations/") {
		return false
	}
	for _, l := range list {
		if imported == l || strings.HasPrefix(imported, l+"/") {
			return true
		}
	}
	return false
}
