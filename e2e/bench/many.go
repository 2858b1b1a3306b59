package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const (
	// guests is how many VMIs there are, and portsPerGuest how many ports of each are
	// open at once: the limit of streams per VMI is 20, with its console and screen.
	guests, portsPerGuest = 25, 18
	// rests is how long nothing is done before memory is measured.
	rests = 5 * time.Second
)

// components are the programs whose memory streams may take.
var components = []string{"virt-controller", "virt-handler", "virt-launcher"}

// Crowd opens streams to many VMIs at once, and measures what memory they take.
func (b *Bench) Crowd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	_, _ = fmt.Fprintf(b.Out, "\nmany streams\n")
	return b.served(ctx, guests, func(all []*vmi.VirtualMachineInstance) error { return b.crowd(ctx, all) })
}

// served measures n VMIs whose pods serve connections. The guests have no disk: their
// firmware finds nothing to start, and halts.
func (b *Bench) served(ctx context.Context, n int, measure func([]*vmi.VirtualMachineInstance) error) error {
	var all []*vmi.VirtualMachineInstance
	for i := range n {
		v := vmitest.New(vmitest.WithName(fmt.Sprintf("bench-served-%d", i)), vmitest.WithMemory("32Mi"), vmitest.WithGracePeriod(0))
		v.Namespace, v.UID = b.Namespace, ""
		v.Spec.Domain.Devices.AutoattachPodInterface = new(false)
		v, err := b.running(ctx, v)
		if err != nil {
			return err
		}
		at, err := b.placeOf(v)
		if err != nil {
			return err
		}
		l, err := at.serve()
		if err != nil {
			return err
		}
		defer func() { _ = l.Close() }()
		all = append(all, v)
	}
	if err := measure(all); err != nil {
		return err
	}
	for _, v := range all {
		if err := b.remove(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// crowd opens all streams and requires that each carries bytes while the others are open.
func (b *Bench) crowd(ctx context.Context, all []*vmi.VirtualMachineInstance) error {
	instances := b.Instances.VirtualMachineInstances(b.Namespace)
	var ports, guestStreams []way
	for _, v := range all {
		dial := instances.PortForward(v.Name)
		for range portsPerGuest {
			ports = append(ports, way{"port of " + v.Name, func() (net.Conn, error) { return dial(ctx, "tcp", ":"+port) }})
		}
		guestStreams = append(guestStreams,
			way{"console of " + v.Name, func() (net.Conn, error) { return instances.Console(ctx, v.Name) }},
			way{"screen of " + v.Name, func() (net.Conn, error) { return instances.VNC(ctx, v.Name, client.VNCOptions{}) }})
	}
	var open []net.Conn
	end := func() {
		for _, c := range open {
			_ = c.Close()
		}
		open = nil
	}
	defer end()
	for _, group := range []struct {
		what string
		ways []way
	}{{"console or screen", guestStreams}, {"forwarded port", ports}} {
		end()
		before, err := b.resident(ctx, group.ways)
		if err != nil {
			return err
		}
		if open, err = openAll(group.ways); err != nil {
			return err
		}
		now, err := b.resident(ctx, nil)
		if err != nil {
			return err
		}
		var each []string
		sum := int64(0)
		for _, name := range components {
			grown := (now[name] - before[name]) / int64(len(group.ways))
			sum += grown
			each = append(each, fmt.Sprintf("%s %.1f", name, float64(grown)/1e3))
		}
		_, _ = fmt.Fprintf(b.Out, "  memory of an open %-18s %.1f kB (%s)\n", group.what+":", float64(sum)/1e3, strings.Join(each, ", "))
	}
	end()
	began := time.Now()
	var err error
	if open, err = openAll(append(ports, guestStreams...)); err != nil {
		return err
	}
	took := time.Since(began)
	if err := carryAll(open[:len(ports)], open[len(ports):]); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.Out, "  streams open at once: %d, of which %d by virt-handler, opened in %.1f s; each of the ports and screens carried bytes then\n",
		len(open), len(guestStreams), took.Seconds())
	return nil
}

// openAll opens each way once. It returns what is open, also with an error.
func openAll(ways []way) (open []net.Conn, err error) {
	for _, w := range ways {
		c, err := w.open()
		if err != nil {
			return open, fmt.Errorf("%s, with %d open: %w", w.name, len(open), err)
		}
		open = append(open, c)
	}
	return open, nil
}

// carryAll sends by all streams at once: ports send back, and screens greet. A console
// whose guest has halted only must not have ended.
func carryAll(ports, guestStreams []net.Conn) error {
	var wait sync.WaitGroup
	failures := make(chan error, len(ports)+len(guestStreams))
	for i, c := range ports {
		wait.Go(func() { failures <- ask(c, string(echoes)+strconv.Itoa(i)+".", strconv.Itoa(i)+".") })
	}
	for i, c := range guestStreams {
		if i%2 == 1 {
			wait.Go(func() { _, err := picture(c); failures <- err })
			continue
		}
		wait.Go(func() {
			_, err := io.WriteString(c, "x")
			failures <- err
		})
	}
	wait.Wait()
	close(failures)
	var all error
	for err := range failures {
		all = errors.Join(all, err)
	}
	return all
}

// resident measures the memory of the components in the cluster, in bytes by their names:
// what is theirs alone of it, without their programs and libraries. Before, it opens and
// closes the ways until that makes no more memory theirs: the heap of each is as large then
// as its collector lets it become.
func (b *Bench) resident(ctx context.Context, ways []way) (all map[string]int64, err error) {
	for range 10 {
		for _, w := range ways {
			c, err := w.open()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			_ = c.Close()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(rests):
		}
		before := all
		if all, err = b.anonymous(ctx); err != nil || len(ways) == 0 {
			return all, err
		}
		steady := before != nil
		for _, name := range components {
			steady = steady && all[name] <= before[name]+before[name]/100
		}
		if steady {
			return all, nil
		}
	}
	return all, nil
}

// anonymous is the memory of the components that is no file's, in bytes.
func (b *Bench) anonymous(ctx context.Context) (map[string]int64, error) {
	sums := map[string]int64{}
	for _, node := range b.Cluster.NodeNames() {
		script := `for p in /proc/[0-9]*; do echo "$(cat $p/comm 2>/dev/null) $(sed -n 's/^Pss_Anon: *\([0-9]*\) kB/\1/p' $p/smaps_rollup 2>/dev/null)"; done`
		out, err := b.Cluster.Node(node).Command(ctx, "sh", "-c", script).Output()
		if err != nil {
			return nil, fmt.Errorf("measure the memory on %s: %w", node, err)
		}
		for line := range strings.Lines(string(out)) {
			name, size, _ := strings.Cut(strings.TrimSpace(line), " ")
			kib, err := strconv.ParseInt(size, 10, 64)
			if err == nil && slices.Contains(components, name) {
				sums[name] += kib << 10
			}
		}
	}
	for _, name := range components {
		if sums[name] == 0 {
			return nil, fmt.Errorf("no process of the cluster is %s", name)
		}
	}
	return sums, nil
}
