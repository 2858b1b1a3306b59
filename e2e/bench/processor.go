package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/podvisor/podvisor/vmi/vmitest"
)

// lives is how many pods and VMIs live and end for each figure of processor time.
const lives = 20

// watched are the programs whose processor time a VMI takes beside its node's, in the
// order in which they are printed.
var watched = []string{"kube-apiserver", "virt-controller", "virt-handler"}

// Processor measures the processor time that the API server and Podvisor's components take
// for the whole life of a VMI, and that of the API server for a plain pod, and prints it.
// What they take at rest meanwhile is not counted. The guests have nothing to boot.
func (b *Bench) Processor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	pod, err := b.each(ctx, func(i int) error {
		_, err := b.pod(ctx, b.sleeper(fmt.Sprintf("plain-life-%d", i)))
		return err
	})
	if err != nil {
		return fmt.Errorf("plain pods: %w", err)
	}
	vm, err := b.each(ctx, func(i int) error {
		v := vmitest.New(vmitest.WithName(fmt.Sprintf("bench-life-%d", i)), vmitest.WithMemory("32Mi"), vmitest.WithGracePeriod(0), vmitest.WithMasquerade("default"))
		v.Namespace, v.UID = b.Namespace, ""
		v, err := b.running(ctx, v)
		if err != nil {
			return err
		}
		return b.remove(ctx, v)
	})
	if err != nil {
		return fmt.Errorf("VMIs: %w", err)
	}
	_, _ = fmt.Fprintf(b.Out, "\nprocessor time of a life, mean of %d\n  plain pod: %s %.1f ms\n  VMI:      ", lives, watched[0], ms(pod[watched[0]]))
	for _, name := range watched {
		_, _ = fmt.Fprintf(b.Out, " %s %.1f ms", name, ms(vm[name]))
	}
	_, _ = fmt.Fprintf(b.Out, "\n  VMI beside a plain pod: %.2f times the time of %s\n", float64(vm[watched[0]])/float64(pod[watched[0]]), watched[0])
	return nil
}

// each returns the processor time of the programs for one call of live, which is called
// several times, without what they take at rest in the same time.
func (b *Bench) each(ctx context.Context, live func(int) error) (map[string]time.Duration, error) {
	rest, err := b.during(ctx, func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * rests):
			return nil
		}
	})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	all, err := b.during(ctx, func() error {
		for i := range lives {
			if err := live(i); err != nil {
				return err
			}
		}
		return nil
	})
	took := time.Since(began)
	for name := range all {
		all[name] -= time.Duration(float64(rest[name]) * took.Seconds() / (2 * rests).Seconds())
		all[name] /= lives
	}
	return all, err
}

// during returns the processor time that the programs take while do runs.
func (b *Bench) during(ctx context.Context, do func() error) (map[string]time.Duration, error) {
	before, err := b.processor(ctx)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	after, err := b.processor(ctx)
	for name := range after {
		after[name] -= before[name]
	}
	return after, err
}

// tick is the unit of times in /proc/PID/stat.
const tick = 10 * time.Millisecond

// processor is the processor time of the programs in the whole cluster so far, by name.
func (b *Bench) processor(ctx context.Context) (map[string]time.Duration, error) {
	sums := map[string]time.Duration{}
	for _, host := range append([]string{"cp"}, b.Cluster.NodeNames()...) {
		script := `for p in /proc/[0-9]*; do echo "$(tr '\0' ' ' < $p/cmdline 2>/dev/null | cut -d' ' -f1)|$(sed 's/.*) //' $p/stat 2>/dev/null | cut -d' ' -f12,13)"; done`
		out, err := b.Cluster.Node(host).Command(ctx, "sh", "-c", script).Output()
		if err != nil {
			return nil, fmt.Errorf("measure the processor time on %s: %w", host, err)
		}
		for line := range strings.Lines(string(out)) {
			program, times, _ := strings.Cut(strings.TrimSpace(line), "|")
			user, system, _ := strings.Cut(times, " ")
			u, err := strconv.ParseInt(user, 10, 64)
			s, err2 := strconv.ParseInt(system, 10, 64)
			if err == nil && err2 == nil {
				sums[program[strings.LastIndex(program, "/")+1:]] += time.Duration(u+s) * tick
			}
		}
	}
	for _, name := range watched {
		if sums[name] == 0 {
			return nil, fmt.Errorf("no process of the cluster is %s", name)
		}
	}
	return sums, nil
}
