package toolchain

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// part is what is built, cached and locked together: the programs of one module.
type part struct {
	name     string
	version  string
	dir      string // the module
	packages []string
	programs []program
	links    map[string]string // made after the programs: name → target
	finish   func(dir string) error
}

// program is one call of go build.
type program struct {
	output  string // below the part's folder
	pkg     string
	cgo     bool
	tags    string
	ldflags string
}

// args is the go command's line for p, which goes into the key too.
func (p program) args(out string) []string {
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w " + p.ldflags)}
	if p.tags != "" {
		args = append(args, "-tags", p.tags)
	}
	return append(args, "-o", out, p.pkg)
}

// names are the names by which the combined binary is called.
var names = []string{
	"coredns", "etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet",
}

func kubernetes(source string) (part, error) {
	dir := filepath.Join(source, "kubernetes")
	version, err := required(dir, "k8s.io/kubernetes")
	if err != nil {
		return part{}, err
	}
	p := part{
		name: "kubernetes", version: version, dir: dir,
		programs: []program{{output: "kubernetes", pkg: ".", ldflags: versioned(version)}},
		links:    map[string]string{},
	}
	for _, name := range names {
		p.links[name] = "kubernetes"
	}
	return p, nil
}

// versioned are the linker's flags by which a program of Kubernetes knows its version.
func versioned(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const base, client = " -X k8s.io/component-base/version.", " -X k8s.io/client-go/pkg/version."
	return base + "gitVersion=" + version + base + "gitMajor=" + major + base + "gitMinor=" + minor +
		base + "gitTreeState=clean" + client + "gitVersion=" + version
}

// OldestAPIServer makes the API server of the oldest Kubernetes that the manifests are for, if
// it is not in the cache, and returns the path of the program. No cluster needs it, so [Build]
// does not make it.
func OldestAPIServer(ctx context.Context, c Config) (string, error) { return c.program(ctx, oldest) }

func oldest(source string) (part, error) {
	dir := filepath.Join(source, "kubernetes-1.32")
	version, err := required(dir, "k8s.io/kubernetes")
	if err != nil {
		return part{}, err
	}
	return part{name: "apiserver", version: version, dir: dir, programs: []program{{
		output: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", ldflags: versioned(version),
	}}}, nil
}

func containers(source string) (part, error) {
	dir := filepath.Join(source, "runtime")
	containerd, err := required(dir, "github.com/containerd/containerd/v2")
	if err != nil {
		return part{}, err
	}
	runc, err := required(dir, "github.com/opencontainers/runc")
	if err != nil {
		return part{}, err
	}
	p := part{
		name: "runtime", version: containerd, dir: dir,
		packages: []string{"gcc", "libc6-dev", "libseccomp-dev", "pkg-config"},
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		p.programs = append(p.programs, program{
			output: name, pkg: "github.com/containerd/containerd/v2/cmd/" + name, tags: "no_btrfs no_devmapper no_zfs",
			ldflags: "-X github.com/containerd/containerd/v2/version.Version=" + containerd,
		})
	}
	for _, plugin := range []string{"ipam/host-local", "main/bridge", "main/loopback", "main/macvlan", "meta/portmap"} {
		p.programs = append(p.programs, program{
			output: "cni/" + filepath.Base(plugin), pkg: "github.com/containernetworking/plugins/plugins/" + plugin,
		})
	}
	for _, output := range []string{"cni/multus-shim", "multus-daemon"} {
		p.programs = append(p.programs, program{
			output: output, pkg: "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/" + filepath.Base(output),
		})
	}
	p.programs = append(p.programs, program{
		output: "runc", pkg: "github.com/opencontainers/runc", cgo: true, tags: "netgo osusergo seccomp",
		ldflags: "-extldflags -static -X main.version=" + strings.TrimPrefix(runc, "v"),
	})
	return p, nil
}

func pause(source string) (part, error) {
	return part{
		name: "pause", version: "v1", dir: filepath.Join(source, "pause"),
		programs: []program{{output: "pause", pkg: "main.go"}},
		finish:   pauseImage,
	}, nil
}

// key names the part in the cache.
func (p part) key() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.GOOS, runtime.GOARCH, p.name, p.version)
	for _, program := range p.programs {
		fmt.Fprintf(h, "%q %v\n", program.args(program.output), program.cgo)
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if !slices.Contains([]string{".go", ".mod", ".sum"}, filepath.Ext(e.Name())) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(p.dir, e.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", e.Name(), len(data), data)
	}
	return p.name + "-" + p.version + "-" + hex.EncodeToString(h.Sum(nil))[:12], nil
}

// required returns the version of a module that the go.mod in dir requires.
func required(dir, module string) (string, error) {
	f, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "require "))
		if len(fields) >= 2 && fields[0] == module {
			return fields[1], nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return "", fmt.Errorf("%s does not require %s", f.Name(), module)
}
