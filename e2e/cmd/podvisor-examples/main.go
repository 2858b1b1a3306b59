// Command podvisor-examples counts how many manifests of users apply unchanged and run,
// in a local cluster of its own. Run it by `make examples MANIFESTS="FILE..."`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/kubectl"
	"github.com/podvisor/podvisor/e2e/local"
	"github.com/podvisor/podvisor/internal/command"
)

var program = command.Program{
	Name: "podvisor-examples",
	Usage: `usage: podvisor-examples [FLAG...] FILE...

Applies each manifest unchanged, in a namespace of its own in a local cluster. Prints
whether the API server takes it, and in which phase its VMIs are in the end. The
images that manifests name are the demo guest under their names. The claims that they
name are made, empty, and the networks of Multus as a bridge of the nodes. VMs that do
not run are started.
`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) (err error) {
	var flags flag.FlagSet
	clusterName := flags.String("name", "examples", "the cluster's name")
	keep := flags.Bool("keep", false, "leave the cluster when done")
	limit := flags.Duration("limit", 3*time.Minute, "how long VMIs may take until they run")
	if err := program.Parse(&flags, args); err != nil {
		return err
	}
	all, err := read(flags.Args())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "podvisor-examples")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	site, err := local.Up(ctx, local.Config{Name: *clusterName, Out: os.Stdout, More: func(built []images.Built) ([]string, error) {
		return guests(built, named(all, imageIn), dir)
	}})
	if !*keep {
		defer func() { err = errors.Join(err, site.Down(ctx)) }()
	}
	if err != nil {
		return err
	}
	k := site.Kubectl
	for i := range all {
		all[i].apply(ctx, k)
	}
	await(ctx, k, all, *limit)
	applied, ran := 0, 0
	for _, e := range all {
		fmt.Printf("%-40s %s\n", e.name, e)
		if e.refused == "" {
			applied++
		}
		if e.runs() {
			ran++
		}
	}
	fmt.Printf("of %d manifests %d apply and %d run\n", len(all), applied, ran)
	return nil
}

// example is a manifest and what became of it.
type example struct {
	name, text string
	refused    string // why the API server does not take it
	started    bool   // a VM was halted
	states     []string
}

// What manifests name.
var (
	imageIn   = regexp.MustCompile(`(?m)^\s*(?:- )?image: *"?([^"\s]+)"?$`)
	networkIn = regexp.MustCompile(`(?m)^\s*(?:- )?networkName: *"?([^"\s/]+)"?$`)
	claimIn   = regexp.MustCompile(`(?m)^\s*(?:- )?claimName: *"?([^"\s]+)"?$`)
)

func read(files []string) ([]example, error) {
	var all []example
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, example{name: filepath.Base(f), text: string(text)})
	}
	if len(all) == 0 {
		return nil, errors.New("name manifests")
	}
	return all, nil
}

// guests writes the demo guest to the folder as an image of each reference.
func guests(built []images.Built, references []string, dir string) (tars []string, err error) {
	for i, reference := range references {
		tar := filepath.Join(dir, fmt.Sprintf("%d.tar", i))
		if err := rename(built, reference, tar); err != nil {
			return nil, fmt.Errorf("make image %s: %w", reference, err)
		}
		tars = append(tars, tar)
	}
	return tars, nil
}

// named are what the manifests name, each once.
func named(all []example, what *regexp.Regexp) []string {
	var found []string
	seen := map[string]bool{}
	for _, e := range all {
		for _, m := range what.FindAllStringSubmatch(e.text, -1) {
			if !seen[m[1]] {
				seen[m[1]] = true
				found = append(found, m[1])
			}
		}
	}
	return found
}

// rename writes the demo guest as an image with the reference.
func rename(built []images.Built, reference, tar string) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	for _, b := range built {
		if b.Name != "demo-guest" {
			continue
		}
		img, err := tarball.ImageFromPath(b.Tar, nil)
		if err != nil {
			return err
		}
		return tarball.WriteToFile(tar, tag, img)
	}
	return errors.New("there is no image demo-guest")
}

// namespace is the namespace of an example.
func (e example) namespace() string {
	return "example-" + strings.ToLower(strings.TrimSuffix(e.name, filepath.Ext(e.name)))
}

// needs are the manifests of what the example names.
func (e *example) needs() []string {
	var all []string
	for _, claim := range named([]example{*e}, claimIn) {
		all = append(all, fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, `+
			`spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, claim))
	}
	for _, network := range named([]example{*e}, networkIn) {
		all = append(all, fmt.Sprintf(`{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: %s}, spec: {config: '%s'}}`, network, bridged))
	}
	return all
}

// bridged is a network of the bridge that all nodes are on.
const bridged = `{"cniVersion": "1.0.0", "name": "bridged", "type": "bridge", "bridge": "br1", "ipam": {"type": "host-local", "subnet": "192.168.90.0/24"}}`

func (e *example) apply(ctx context.Context, k kubectl.Kubectl) {
	in := func(args ...string) (string, error) {
		return k.Run(ctx, append([]string{"-n", e.namespace()}, args...)...)
	}
	if out, err := in("create", "namespace", e.namespace()); err != nil {
		e.refused = out + err.Error()
		return
	}
	for _, text := range e.needs() {
		if out, err := k.RunInput(ctx, strings.NewReader(text), "-n", e.namespace(), "apply", "-f", "-"); err != nil {
			e.refused = out + err.Error()
			return
		}
	}
	if out, err := k.RunInput(ctx, strings.NewReader(e.text), "-n", e.namespace(), "apply", "-f", "-"); err != nil {
		e.refused = strings.Join(strings.Fields(out+err.Error()), " ")
		return
	}
	vms, err := in("get", "vm", "-o", `jsonpath={range .items[?(@.spec.runStrategy=="Halted")]}{.metadata.name}{"\n"}{end}`)
	if err != nil {
		e.refused = err.Error()
		return
	}
	for vm := range strings.FieldsSeq(vms) {
		if _, err := in("patch", "vm", vm, "--type=merge", "-p", `{"spec":{"runStrategy":"Always"}}`); err != nil {
			e.refused = err.Error()
			return
		}
		e.started = true
	}
}

// await waits until each VMI runs or has ended, or the time is over.
func await(ctx context.Context, k kubectl.Kubectl, all []example, limit time.Duration) {
	const state = `{.status.phase}{" "}{.metadata.name}{" "}{.status.conditions[?(@.status=="False")].message}{"\n"}`
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		waiting := false
		for i := range all {
			e := &all[i]
			if e.refused != "" || e.runs() {
				continue
			}
			out, err := k.Run(ctx, "-n", e.namespace(), "get", "vmi", "-o", "jsonpath={range .items[*]}"+state+"{end}")
			if err != nil {
				break // the time is over
			}
			e.states = nil
			for line := range strings.Lines(out) {
				e.states = append(e.states, strings.TrimSpace(line))
			}
			waiting = waiting || !e.runs()
		}
		if !waiting {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// runs says that there is a VMI and all run.
func (e example) runs() bool {
	for _, s := range e.states {
		if !strings.HasPrefix(s, "Running ") {
			return false
		}
	}
	return len(e.states) > 0
}

// String says what became of it.
func (e example) String() string {
	switch {
	case e.refused != "":
		return "refused: " + e.refused
	case len(e.states) == 0:
		return "applies; it has no VMI"
	case e.started:
		return "applies; started: " + strings.Join(e.states, "; ")
	}
	return "applies: " + strings.Join(e.states, "; ")
}
