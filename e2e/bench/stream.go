package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

const (
	// rounds is how often each way is measured. They take turns, so that what else the
	// host does meets both.
	rounds = 10
	// keys is how many keys are typed in a round.
	keys = 20
	// moved is what is sent by a forwarded port in a round, in bytes.
	moved = 128 << 20
	// port is where a pod listens.
	port = "9000"
)

// Streams measures a console and a screen of the API subresources.kubevirt.io beside the
// shortest way to the same, QEMU's socket.
func (b *Bench) Streams(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	_, _ = fmt.Fprintf(b.Out, "\nstreams, medians over %d rounds\n", rounds)
	v := b.Guest("bench-stream")
	v, err := b.running(ctx, v)
	if err != nil {
		return err
	}
	if err := b.awaitConsole(ctx, v, "press Enter for a root shell"); err != nil {
		return err
	}
	for _, measure := range []func(context.Context, *vmi.VirtualMachineInstance) error{b.typing, b.pictures} {
		if err := measure(ctx, v); err != nil {
			return err
		}
	}
	return b.remove(ctx, v)
}

// Ports measures a port forwarded by the API subresources.kubevirt.io beside one that is
// forwarded by kubectl.
func (b *Bench) Ports(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	_, _ = fmt.Fprintf(b.Out, "\nforwarded ports, medians over %d rounds\n", rounds)
	return b.served(ctx, 1, func(all []*vmi.VirtualMachineInstance) error { return b.forwarding(ctx, all[0]) })
}

// running creates the VMI and waits until it runs.
func (b *Bench) running(ctx context.Context, v *vmi.VirtualMachineInstance) (*vmi.VirtualMachineInstance, error) {
	v, err := b.Instances.VirtualMachineInstances(b.Namespace).Create(ctx, v, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return b.await(ctx, v, func(v *vmi.VirtualMachineInstance) bool { return v.Status.Phase == vmi.PhaseRunning })
}

func (b *Bench) remove(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	if err := b.Instances.VirtualMachineInstances(b.Namespace).Delete(ctx, v.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return b.podGone(ctx, podsOf(v))
}

// way is one of two ways to the same.
type way struct {
	name string
	open func() (net.Conn, error)
}

// turns measures both ways in each round, and returns the medians.
func turns(first, second way, measure func(way) (float64, error)) (x, y float64, err error) {
	var all [2][]float64
	for range rounds {
		for i, w := range []way{first, second} {
			took, err := measure(w)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: %w", w.name, err)
			}
			all[i] = append(all[i], took)
		}
	}
	same := func(f float64) float64 { return f }
	return median(all[0], same), median(all[1], same), nil
}

// typing measures from a key to its echo by the guest's terminal.
func (b *Bench) typing(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	at, err := b.placeOf(v)
	if err != nil {
		return err
	}
	instances := b.Instances.VirtualMachineInstances(b.Namespace)
	road := way{"console", func() (net.Conn, error) { return instances.Console(ctx, v.Name) }}
	c, err := road.open()
	if err != nil {
		return err
	}
	// The terminal echoes, and no program redraws the line.
	for _, step := range []struct{ types, shows string }{{"\r", "root@"}, {"cat >/dev/null; echo over\r", "echo over\r\n"}} {
		if err := ask(c, step.types, step.shows); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	if err := c.Close(); err != nil {
		return err
	}
	direct := way{"QEMU's socket of the console", func() (net.Conn, error) { return at.dial("virt-serial0") }}
	x, y, err := turns(road, direct, func(w way) (float64, error) {
		c, err := w.open()
		if err != nil {
			return 0, err
		}
		defer func() { _ = c.Close() }()
		if err := ask(c, "\r", "\r\n"); err != nil { // QEMU has taken the connection
			return 0, err
		}
		var all []float64
		for i := range keys {
			key := string(rune('a' + i%26))
			began := time.Now()
			if err := ask(c, key, key); err != nil {
				return 0, err
			}
			all = append(all, milliseconds(time.Since(began)))
		}
		if err := ask(c, "\r", "\r\n"); err != nil {
			return 0, err
		}
		return median(all, func(f float64) float64 { return f }), nil
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.Out, "  console, a key to its echo         %7.2f ms, by QEMU's socket %7.2f ms (%.2f times)\n", x, y, x/y)
	return nil
}

// ask writes, and reads until the text has come.
func ask(c net.Conn, types, shows string) error {
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, types); err != nil {
		return err
	}
	var seen []byte
	buffer := make([]byte, 4096)
	for {
		n, err := c.Read(buffer)
		if seen = append(seen, buffer[:n]...); bytes.Contains(seen, []byte(shows)) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %q, %q is not in %q: %w", types, shows, seen, err)
		}
	}
}

// pictures measures from the opening of a screen to its first picture.
func (b *Bench) pictures(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	at, err := b.placeOf(v)
	if err != nil {
		return err
	}
	instances, size := b.Instances.VirtualMachineInstances(b.Namespace), 0
	x, y, err := turns(
		way{"vnc", func() (net.Conn, error) { return instances.VNC(ctx, v.Name, client.VNCOptions{}) }},
		way{"QEMU's socket of the screen", func() (net.Conn, error) { return at.dial("virt-vnc") }},
		func(w way) (took float64, err error) {
			began := time.Now()
			c, err := w.open()
			if err != nil {
				return 0, err
			}
			defer func() { _ = c.Close() }()
			size, err = picture(c)
			return milliseconds(time.Since(began)), err
		})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.Out, "  screen, opened to its first picture%7.2f ms, by QEMU's socket %7.2f ms (%+.2f ms), %d bytes\n", x, y, x-y, size)
	return nil
}

// picture asks for the whole screen in the protocol RFB, without compression, and returns
// its size in bytes.
func picture(c net.Conn) (int, error) {
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return 0, err
	}
	var failed error
	read := func(n int) []byte {
		out := make([]byte, n)
		if failed == nil {
			_, failed = io.ReadFull(c, out)
		}
		return out
	}
	write := func(p []byte) {
		if failed == nil {
			_, failed = c.Write(p)
		}
	}
	write(read(12))       // the version
	read(int(read(1)[0])) // the kinds of security
	write([]byte{1})      // none
	read(4)               // the result
	write([]byte{1})      // shared
	screen := read(24)    // ServerInit
	bits := screen[4]     // of a pixel
	read(int(binary.BigEndian.Uint32(screen[20:])))
	write([]byte{2, 0, 0, 1, 0, 0, 0, 0}) // SetEncodings: raw
	write(slices.Concat([]byte{3, 0, 0, 0, 0, 0}, screen[:4]))
	size := 0
	header := read(4) // FramebufferUpdate
	if failed == nil && header[0] != 0 {
		return 0, fmt.Errorf("message %d is no picture", header[0])
	}
	for range binary.BigEndian.Uint16(header[2:]) {
		r := read(12)
		pixels := int(binary.BigEndian.Uint16(r[4:])) * int(binary.BigEndian.Uint16(r[6:]))
		size += len(read(pixels * int(bits) / 8))
	}
	return size, failed
}

// forwarding measures how fast bytes come from and go to a port of a pod.
func (b *Bench) forwarding(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	pod, err := b.podOf(ctx, v)
	if err != nil {
		return err
	}
	local, stop, err := b.kubectlForward(ctx, pod.Name)
	if err != nil {
		return err
	}
	defer stop()
	dial := b.Instances.VirtualMachineInstances(b.Namespace).PortForward(v.Name)
	road := way{"PortForward", func() (net.Conn, error) { return dial(ctx, "tcp", ":"+port) }}
	plain := way{"kubectl port-forward", func() (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", local) }}
	for _, d := range []struct {
		name string
		move func(net.Conn) error
	}{{"from the pod", receive}, {"to the pod", transmit}} {
		x, y, err := turns(road, plain, func(w way) (float64, error) {
			c, err := w.open()
			if err != nil {
				return 0, err
			}
			defer func() { _ = c.Close() }()
			began := time.Now()
			err = d.move(c)
			return moved / 1e6 / time.Since(began).Seconds(), err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		_, _ = fmt.Fprintf(b.Out, "  forwarded port, bytes %-12s %7.0f MB/s, by kubectl's %11.0f MB/s (%.2f times)\n", d.name, x, y, x/y)
	}
	return nil
}

// What a client asks the server of a pod for: to send bytes, to take them and answer when
// all have come, or to send back what comes.
const (
	sends  = 's'
	takes  = 't'
	echoes = 'e'
)

// answer serves one connection to a pod.
func answer(c net.Conn) {
	defer func() { _ = c.Close() }()
	var what [1]byte
	if _, err := io.ReadFull(c, what[:]); err != nil {
		return
	}
	block := make([]byte, 64<<10)
	switch what[0] {
	case sends:
		for range moved / len(block) {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
		_, _ = c.Read(what[:]) // until the client has all
	case takes:
		if _, err := io.CopyN(io.Discard, struct{ io.Reader }{c}, moved); err == nil {
			_, _ = c.Write(what[:])
			_, _ = c.Read(what[:])
		}
	case echoes:
		small := make([]byte, 64)
		for {
			n, err := c.Read(small)
			if err != nil {
				return
			}
			if _, err := c.Write(small[:n]); err != nil {
				return
			}
		}
	}
}

func receive(c net.Conn) error {
	if _, err := c.Write([]byte{sends}); err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(c, moved), make([]byte, 64<<10))
	if err == nil && n < moved {
		err = fmt.Errorf("%d bytes came of %d", n, moved)
	}
	return err
}

func transmit(c net.Conn) error {
	if _, err := c.Write([]byte{takes}); err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for range moved / len(block) {
		if _, err := c.Write(block); err != nil {
			return err
		}
	}
	_, err := io.ReadFull(c, block[:1])
	return err
}

// kubectlForward starts kubectl port-forward to the pod, and returns where it listens.
func (b *Bench) kubectlForward(ctx context.Context, pod string) (local string, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := b.Kubectl.Command(ctx, "-n", b.Namespace, "port-forward", "pod/"+pod, ":"+port)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return "", nil, err
	}
	stop = func() { cancel(); _ = cmd.Wait() }
	said, buffer := "", make([]byte, 256)
	for !strings.Contains(said, " -> ") {
		n, err := out.Read(buffer)
		if said += string(buffer[:n]); err != nil {
			stop()
			return "", nil, fmt.Errorf("kubectl port-forward says %q: %w", said, err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	local, _, _ = strings.Cut(strings.TrimPrefix(said, "Forwarding from "), " -> ")
	return local, stop, nil
}

// podOf is the VMI's pod.
func (b *Bench) podOf(ctx context.Context, v *vmi.VirtualMachineInstance) (*corev1.Pod, error) {
	l, err := b.Kube.CoreV1().Pods(b.Namespace).List(ctx, podsOf(v))
	if err != nil || len(l.Items) != 1 {
		return nil, fmt.Errorf("find the pod of %s: %d found: %w", v.Name, len(l.Items), err)
	}
	return &l.Items[0], nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
