// Package bench measures what a VMI costs: time beside a plain pod, writes
// to the API, memory beside the guest, and what its streams take beside the
// shortest way to the guest.
//
// The figures are medians over several runs on an idle cluster whose images are
// on the nodes already.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/kubectl"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Bench measures in one cluster.
type Bench struct {
	Cluster   *cluster.Cluster
	Kube      kubernetes.Interface
	Instances *client.Client
	// Kubectl is a kubectl of the cluster. Required.
	Kubectl kubectl.Kubectl
	// Namespace is where pods and VMIs are made. Required.
	Namespace string
	// Guest makes a VMI of the name. Required.
	Guest func(name string) *vmi.VirtualMachineInstance
	// PodImage is the small image of the plain pod. Required.
	PodImage string
	// Runs is how often each is measured. 0: 10.
	Runs int
	// Out is where the figures go. Required.
	Out io.Writer
}

// sample is what one run measured.
type sample struct {
	plain, shaped, start, end moments
	podReady, running, gone   time.Duration
	startWrites, deleteWrites int
	startEvents, deleteEvents int
	launcher, daemon, qemu    int64
}

// Run measures and prints.
func (b *Bench) Run(ctx context.Context) error {
	var all []sample
	for i := range b.runs() {
		s, err := b.once(ctx, i)
		if err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
		all = append(all, s)
		_, _ = fmt.Fprintf(b.Out, "run %2d: pod Ready %.2f s, VMI Running %.2f s, guest off to gone %.2f s, %d+%d writes, %d+%d events\n",
			i+1, s.podReady.Seconds(), s.running.Seconds(), s.gone.Seconds(), s.startWrites, s.deleteWrites, s.startEvents, s.deleteEvents)
	}
	b.report(all)
	return nil
}

func (b *Bench) runs() int { return cmp.Or(b.Runs, 10) }

func (b *Bench) report(all []sample) {
	seconds := func(f func(sample) time.Duration) float64 {
		return median(all, func(s sample) float64 { return f(s).Seconds() })
	}
	count := func(f func(sample) int) float64 { return median(all, func(s sample) float64 { return float64(f(s)) }) }
	mib := func(f func(sample) int64) float64 {
		return median(all, func(s sample) float64 { return float64(f(s)) / (1 << 20) })
	}
	pod := seconds(func(s sample) time.Duration { return s.podReady })
	run := seconds(func(s sample) time.Duration { return s.running })
	b.roads(all)
	_, _ = fmt.Fprintf(b.Out, `
medians over %d runs
  plain pod, created to Ready        %6.2f s
  VMI, created to Running        %6.2f s  (%+.2f s beside the pod)
  VMI deleted, guest off to gone %6.2f s
  API writes, created to Running     %6.0f    and %.0f events
  API writes, deletion               %6.0f    and %.0f events
  memory (PSS) of virt-launcher      %6.1f MiB
  memory (PSS) of the libvirt daemon %6.1f MiB
  memory (PSS) of QEMU               %6.1f MiB
`, len(all), pod, run, run-pod, seconds(func(s sample) time.Duration { return s.gone }),
		count(func(s sample) int { return s.startWrites }), count(func(s sample) int { return s.startEvents }),
		count(func(s sample) int { return s.deleteWrites }), count(func(s sample) int { return s.deleteEvents }),
		mib(func(s sample) int64 { return s.launcher }), mib(func(s sample) int64 { return s.daemon }), mib(func(s sample) int64 { return s.qemu }))
}

func (b *Bench) once(ctx context.Context, i int) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if s.plain, err = b.pod(ctx, b.sleeper(fmt.Sprintf("plain-%d", i))); err != nil {
		return s, fmt.Errorf("plain pod: %w", err)
	}
	v, shape, err := b.start(ctx, b.Guest(fmt.Sprintf("bench-%d", i)), &s)
	if err != nil {
		return s, err
	}
	s.podReady, s.running = s.plain.between(stepCreated, stepSeen), s.start.between(stepCreated, stepSeen)
	if err := b.awaitConsole(ctx, v, "serving HTTP"); err != nil {
		return s, err
	}
	if err := b.memory(ctx, v, &s); err != nil {
		return s, err
	}
	if s.startWrites, s.startEvents, err = b.writes(v); err != nil {
		return s, err
	}
	if err := b.deletion(ctx, v, &s); err != nil {
		return s, err
	}
	writes, events, err := b.writes(v)
	s.deleteWrites, s.deleteEvents = writes-s.startWrites, events-s.startEvents
	if err != nil {
		return s, err
	}
	shape.Name = fmt.Sprintf("shaped-%d", i)
	if s.shaped, err = b.pod(ctx, shape); err != nil {
		return s, fmt.Errorf("pod of the launcher's shape: %w", err)
	}
	return s, b.podGone(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + shape.Name})
}

// await waits until the VMI is as it should be.
func (b *Bench) await(ctx context.Context, v *vmi.VirtualMachineInstance, is func(*vmi.VirtualMachineInstance) bool) (*vmi.VirtualMachineInstance, error) {
	w, err := b.Instances.VirtualMachineInstances(b.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + v.Name})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if v, ok := e.Object.(*vmi.VirtualMachineInstance); ok && e.Type != watch.Deleted && is(v) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%s is not as expected: %w", v.Name, ctx.Err())
}

// podGone waits until there is no such pod any more, so that it does not disturb
// the next run.
func (b *Bench) podGone(ctx context.Context, of metav1.ListOptions) error {
	pods := b.Kube.CoreV1().Pods(b.Namespace)
	for ctx.Err() == nil {
		l, err := pods.List(ctx, of)
		if err != nil || len(l.Items) == 0 {
			return err
		}
		// Asking again and again would be most of what the API server does meanwhile.
		from := of
		from.ResourceVersion = l.ResourceVersion
		w, err := pods.Watch(ctx, from)
		if err != nil {
			return err
		}
		for e := range w.ResultChan() {
			if e.Type == watch.Deleted || e.Type == watch.Error {
				break
			}
		}
		w.Stop()
	}
	return ctx.Err()
}

// awaitConsole follows the VMI's console until it holds the text.
func (b *Bench) awaitConsole(ctx context.Context, v *vmi.VirtualMachineInstance, text string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := b.follow(ctx, v, text)
	if err != nil {
		return err
	}
	_, err = c.found()
	return err
}

// median is the median of f over all.
func median[T any](all []T, f func(T) float64) float64 {
	x := make([]float64, len(all))
	for i, s := range all {
		x[i] = f(s)
	}
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// writes counts what the components of Podvisor wrote for the VMI so far:
// writes of objects, and events.
func (b *Bench) writes(v *vmi.VirtualMachineInstance) (objects, events int, err error) {
	f, err := os.Open(b.Cluster.AuditLog)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = f.Close() }()
	return countWrites(f, b.Namespace, v.Name)
}

// podsOf selects the pods of the VMI.
func podsOf(v *vmi.VirtualMachineInstance) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: vmi.CreatedByLabel + "=" + string(v.UID)}
}
