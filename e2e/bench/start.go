package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/vmi"
)

// sleepContainer is the container of the plain pod.
const sleepContainer = "sleep"

// sleeper is a plain pod of a small image.
func (b *Bench) sleeper(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			Containers:                    []corev1.Container{{Name: sleepContainer, Image: b.PodImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "3600"}}},
		},
	}
}

// shapeOf is a pod with all that a launcher's pod has, whose container sleeps: what Kubernetes
// takes for it is what it takes for the launcher's.
func (b *Bench) shapeOf(launcher *corev1.Pod) *corev1.Pod {
	p := &corev1.Pod{Spec: *launcher.Spec.DeepCopy()}
	p.Spec.NodeName, p.Spec.ReadinessGates, p.Spec.TerminationGracePeriodSeconds = "", nil, new(int64)
	for i := range p.Spec.Containers {
		if c := &p.Spec.Containers[i]; c.Name == vmi.ComputeContainer {
			c.Image, c.Command, c.Args = b.PodImage, []string{"sleep", "3600"}, nil
			c.LivenessProbe, c.ReadinessProbe = nil, nil
		}
	}
	return p
}

// sources are where the moments of a start or an end are read, from a moment on.
type sources struct {
	from  time.Time
	audit position
	// runtimes are the logs of the container runtimes, by their nodes.
	runtimes map[string]position
}

func (b *Bench) sources() (s sources, err error) {
	s = sources{from: time.Now(), runtimes: map[string]position{}}
	if s.audit, err = positionOf(b.Cluster.AuditLog); err != nil {
		return s, err
	}
	for _, n := range b.Cluster.NodeNames() {
		if s.runtimes[n], err = positionOf(filepath.Join(b.Cluster.Node(n).Dir(), "log", "containerd.log")); err != nil {
			return s, err
		}
	}
	return s, nil
}

// started adds what the runtime and the API server have logged of a pod and its VMI.
func (b *Bench) started(m moments, s sources, instance string, p *corev1.Pod, container string) error {
	runtime, err := s.runtimes[p.Spec.NodeName].since()
	if err != nil {
		return err
	}
	if err := m.runtime(runtime, p.Name, container); err != nil {
		return err
	}
	audit, err := s.audit.since()
	if err != nil {
		return err
	}
	return m.starting(audit, b.Namespace, instance, p.Name)
}

// pod measures a pod from its creation to Ready, and deletes it.
func (b *Bench) pod(ctx context.Context, p *corev1.Pod) (moments, error) {
	s, err := b.sources()
	if err != nil {
		return nil, err
	}
	pods, m := b.Kube.CoreV1().Pods(b.Namespace), moments{stepCreated: time.Now()}
	if _, err = pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	w, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.Name})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		now, ok := e.Object.(*corev1.Pod)
		if ok && slices.ContainsFunc(now.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			m[stepSeen] = time.Now()
			if err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
			return m, b.started(m, s, "", now, p.Spec.Containers[0].Name)
		}
	}
	return nil, fmt.Errorf("%s was not ready: %w", p.Name, ctx.Err())
}

// start measures a VMI from its creation to Running. It returns also the shape of its pod.
func (b *Bench) start(ctx context.Context, v *vmi.VirtualMachineInstance, s *sample) (*vmi.VirtualMachineInstance, *corev1.Pod, error) {
	from, err := b.sources()
	if err != nil {
		return nil, nil, err
	}
	s.start = moments{stepCreated: time.Now()}
	if v, err = b.running(ctx, v); err != nil {
		return nil, nil, err
	}
	s.start[stepSeen] = time.Now()
	p, err := b.podOf(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	if err := b.programs(ctx, s.start, from.from, v, p); err != nil {
		return nil, nil, err
	}
	// Last: a watcher may see a write before it is in the log.
	return v, b.shapeOf(p), b.started(s.start, from, v.Name, p, vmi.ComputeContainer)
}

// programs adds what the handler, the launcher and libvirt have logged of the VMI's start.
func (b *Bench) programs(ctx context.Context, m moments, from time.Time, v *vmi.VirtualMachineInstance, launcher *corev1.Pod) error {
	const home = "kubevirt"
	handlers, err := b.Kube.CoreV1().Pods(home).List(ctx, metav1.ListOptions{
		LabelSelector: "kubevirt.io=virt-handler", FieldSelector: "spec.nodeName=" + v.Status.NodeName,
	})
	if err != nil {
		return err
	}
	for _, h := range append(handlers.Items, *launcher) {
		log, err := b.Kube.CoreV1().Pods(h.Namespace).GetLogs(h.Name, &corev1.PodLogOptions{SinceTime: new(metav1.NewTime(from))}).DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", h.Name, err)
		}
		m.lines(log, v.Namespace+"/"+v.Name, said)
	}
	at, err := b.placeOf(v)
	if err != nil {
		return err
	}
	log, err := os.ReadFile(fmt.Sprintf("%s/root%s/libvirt/cache/libvirt/qemu/log/%s_%s.log", at.proc, "/run/kubevirt-private", v.Namespace, v.Name))
	if err != nil {
		return err
	}
	return m.qemu(log)
}

// deletion deletes the VMI and measures from the guest's last line to the
// end of the object.
func (b *Bench) deletion(ctx context.Context, v *vmi.VirtualMachineInstance, s *sample) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, err := b.sources()
	if err != nil {
		return err
	}
	console, err := b.follow(ctx, v, "powering off")
	if err != nil {
		return err
	}
	w, err := b.Instances.VirtualMachineInstances(b.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + v.Name})
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := b.Instances.VirtualMachineInstances(b.Namespace).Delete(ctx, v.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	for e := range w.ResultChan() {
		if e.Type != watch.Deleted {
			continue
		}
		s.end = moments{stepGone: time.Now()}
		if s.end[stepOff], err = console.found(); err != nil {
			return err
		}
		s.gone = s.end.between(stepOff, stepGone)
		if err := b.podGone(ctx, podsOf(v)); err != nil {
			return err
		}
		// A watcher may see a write before it is in the log.
		audit, err := from.audit.since()
		if err != nil {
			return err
		}
		if err := s.end.ending(audit, b.Namespace, v.Name); err != nil {
			return err
		}
		s.end.lines(console.rest(), v.Namespace+"/"+v.Name, saidAtEnd)
		return nil
	}
	return fmt.Errorf("%s is still there: %w", v.Name, ctx.Err())
}

// console is the output of a launcher that is followed.
type console struct {
	at   chan time.Time // when the text was there
	done chan error     // the end
	all  bytes.Buffer   // to be read after the end
}

// follow follows the VMI's console, and looks for the text.
func (b *Bench) follow(ctx context.Context, v *vmi.VirtualMachineInstance, text string) (*console, error) {
	pod, err := b.podOf(ctx, v)
	if err != nil {
		return nil, err
	}
	r, err := b.Kube.CoreV1().Pods(b.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: vmi.ComputeContainer, Follow: true}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	c := &console{at: make(chan time.Time, 1), done: make(chan error, 1)}
	go func() {
		defer func() { _ = r.Close() }()
		buf, seen := make([]byte, 4096), false
		for {
			n, err := r.Read(buf)
			c.all.Write(buf[:n])
			if !seen && bytes.Contains(c.all.Bytes(), []byte(text)) {
				seen = true
				c.at <- time.Now()
			}
			if err != nil {
				if !seen {
					c.done <- fmt.Errorf("the console of %s ended before %q: %w", v.Name, text, err)
				} else if !errors.Is(err, io.EOF) {
					c.done <- err
				}
				close(c.done)
				return
			}
		}
	}()
	return c, nil
}

// found waits for the text and is when it was there.
func (c *console) found() (time.Time, error) {
	select {
	case at := <-c.at:
		return at, nil
	case err := <-c.done:
		select {
		case at := <-c.at:
			return at, nil
		default:
			return time.Time{}, err
		}
	}
}

// rest waits for the end and is all that was written.
func (c *console) rest() []byte {
	<-c.done
	return c.all.Bytes()
}

// roads prints the roads of all samples.
func (b *Bench) roads(all []sample) {
	of := func(f func(sample) moments) (out []moments) {
		for _, s := range all {
			out = append(out, f(s))
		}
		return out
	}
	printRoad(b.Out, "from create to Running, and to Ready", stepCreated, startRoad,
		column{"plain pod", of(func(s sample) moments { return s.plain }), podRoad},
		column{"launcher's shape", of(func(s sample) moments { return s.shaped }), podRoad},
		column{"VMI", of(func(s sample) moments { return s.start }), startRoad})
	printRoad(b.Out, "from the guest's end to the VMI's", stepOff, endRoad, column{"VMI", of(func(s sample) moments { return s.end }), endRoad})
}
