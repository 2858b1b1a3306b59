// Package demo shows Podvisor in a cluster: it installs, boots a VMI and shows that
// its guest answers, starts, stops and starts a VM, and opens the console and the screen of
// a guest.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/e2e/kubectl"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Demo shows a VMI and a VM in one cluster.
type Demo struct {
	// Root is the folder of the project. Required.
	Root string
	// Kubectl talks to the cluster. Required.
	Kubectl kubectl.Kubectl
	// Reference names the image of a component, with its tag. Required.
	Reference func(component string) string
	// Content is a digest over the images.
	Content string
	// Out is where it is shown. Required.
	Out io.Writer

	start time.Time
}

const (
	namespace = "default"
	name      = "hello"
)

// Run installs Podvisor, boots the VMI and shows it, and then the VM.
func (d *Demo) Run(ctx context.Context) error {
	d.start = time.Now()
	d.title("Install Podvisor: kubectl apply --server-side -k manifests")
	err := install.Install(ctx, install.Config{
		Kubectl: d.Kubectl, Manifests: filepath.Join(d.Root, "manifests"),
		Reference: d.Reference, Emulation: true, Content: d.Content, Out: d.Out,
	})
	if err != nil {
		return fmt.Errorf("install Podvisor: %w", err)
	}
	d.say("virt-controller and virt-handler are ready")
	if err := d.boot(ctx); err != nil {
		return err
	}
	if err := d.show(ctx); err != nil {
		return err
	}
	if err := d.showVM(ctx); err != nil {
		return err
	}
	return d.look(ctx)
}

// boot applies the example and waits, visibly, until the guest serves.
func (d *Demo) boot(ctx context.Context) error {
	kube, vmis, err := d.clients()
	if err != nil {
		return err
	}
	if _, err := d.Kubectl.Run(ctx, "-n", namespace, "delete", "vmi", name, "--ignore-not-found", "--timeout=60s"); err != nil {
		return fmt.Errorf("remove the VMI of an earlier demo: %w", err)
	}
	manifest, err := d.manifest("vmi-hello.yaml")
	if err != nil {
		return err
	}
	d.title("Boot a VMI: kubectl apply -f examples/vmi-hello.yaml -f examples/service-hello.yaml")
	if _, err := d.Kubectl.Run(ctx, "-n", namespace, "apply", "-f", filepath.Join(d.Root, "examples/service-hello.yaml")); err != nil {
		return err
	}
	t := newTimeline(d.Out)
	if _, err := d.Kubectl.RunInput(ctx, strings.NewReader(manifest), "-n", namespace, "apply", "-f", "-"); err != nil {
		return err
	}
	v, err := vmis.VirtualMachineInstances(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	t.Note("the VMI %s/%s is created", v.Namespace, v.Name)
	return d.follow(ctx, t, kube, vmis, v)
}

func (d *Demo) follow(ctx context.Context, t *Timeline, kube kubernetes.Interface, vmis *client.Client, v *vmi.VirtualMachineInstance) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("two minutes are over; "+
		"look at `kubectl -n %s describe vmi %s` and `kubectl -n %s logs -l kubevirt.io=virt-launcher`", namespace, name, namespace))
	defer cancel()
	pods, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = t.watchPod(pods, kube, v) }()
	running, err := t.awaitRunning(ctx, vmis, v)
	if err != nil {
		return err
	}
	for _, i := range running.Status.Interfaces {
		t.Note("interface %s answers at %s", i.Name, i.IP)
	}
	return d.awaitServing(ctx, t)
}

// awaitServing waits until the guest says on its console that it serves.
func (d *Demo) awaitServing(ctx context.Context, t *Timeline) error {
	for {
		console, err := d.console(ctx, "vm.kubevirt.io/name="+name)
		if err == nil && strings.Contains(console, "serving HTTP") {
			t.Note("the guest has booted and serves HTTP")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the guest does not serve yet: %w", context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// console is what the guest of the pod with this label wrote to its serial console: the
// pod's log.
func (d *Demo) console(ctx context.Context, label string) (string, error) {
	return d.Kubectl.Run(ctx, "-n", namespace, "logs", "-l", "kubevirt.io=virt-launcher,"+label, "-c", vmi.ComputeContainer, "--tail=-1")
}

// show shows what there is to see of the VMI.
func (d *Demo) show(ctx context.Context) error {
	d.title("kubectl get vmi,pods -o wide")
	table, err := d.Kubectl.Run(ctx, "-n", namespace, "get", "vmi,pods", "-o", "wide")
	if err != nil {
		return err
	}
	d.text(table)

	d.title("The guest's console: kubectl logs")
	console, err := d.console(ctx, "vm.kubevirt.io/name="+name)
	if err != nil {
		return err
	}
	d.text(guestLines(console))

	d.title("The guest's page, through the Service, from another pod")
	page, err := d.fetch(ctx)
	if err != nil {
		return err
	}
	d.text(page)
	return nil
}

// fetch gets the guest's page through the Service from a pod of its own.
func (d *Demo) fetch(ctx context.Context) (string, error) {
	page, err := d.Kubectl.Run(ctx, "-n", namespace, "run", "visitor", "--rm", "--attach", "--quiet", "--restart=Never",
		"--image="+d.Reference("tools"), "--image-pull-policy=IfNotPresent", "--command", "--", "wget", "-q", "-O", "-", "http://"+name)
	if err != nil {
		return "", fmt.Errorf("fetch http://%s through the Service: %w", name, err)
	}
	return page, nil
}

// HowToGoOn says what a user may try next, after the lines that lead to the
// cluster, and how everything is removed.
func (d *Demo) HowToGoOn(toCluster, remove string) {
	d.title("How to go on")
	d.text(fmt.Sprintf(`%s
kubectl get vmi                          # the VMI
kubectl describe vmi hello               # its conditions and events
kubectl logs -f -l kubevirt.io=virt-launcher   # what it writes to its console
go run ./examples/console hello          # its console; Ctrl-] leaves
./examples/vnc-web/vendor.sh && go run ./examples/vnc-web   # a page with the screens of both
kubectl -n kubevirt logs deploy/virt-controller
kubectl -n kubevirt logs ds/virt-handler
kubectl delete vmi hello                 # power it off
kubectl delete vm lasting                # the same for the VM
%-40s # remove everything`, toCluster, remove))
}

func (d *Demo) clients() (kubernetes.Interface, *client.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", d.Kubectl.Kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	kube, err := kubernetes.NewForConfig(rest.AddUserAgent(cfg, "podvisor-demo"))
	if err != nil {
		return nil, nil, err
	}
	vmis, err := client.New(cfg)
	return kube, vmis, err
}

// manifest reads an example and lets its images be the ones of this demo.
func (d *Demo) manifest(file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(d.Root, "examples", file))
	return strings.ReplaceAll(string(b), "localhost/podvisor/demo-guest:dev", d.Reference("demo-guest")), err
}

// guestLines are the lines of the console that the guest's own init wrote.
func guestLines(console string) string {
	var out []string
	for line := range strings.Lines(console) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "podvisor-guest:") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func (d *Demo) title(s string) { _, _ = fmt.Fprintf(d.Out, "\n== %s\n", s) }
func (d *Demo) say(s string) {
	_, _ = fmt.Fprintf(d.Out, "  %6.2f s  %s\n", time.Since(d.start).Seconds(), s)
}
func (d *Demo) text(s string) {
	for line := range strings.Lines(s) {
		_, _ = fmt.Fprintf(d.Out, "  %s\n", strings.TrimRight(line, "\n"))
	}
}
