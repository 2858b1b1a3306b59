package scrape

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// encoded are guests with 4 processors, 2 disks, an interface and 4 file systems, whose answers
// are decoded as those of launchers are. The first hang.
type encoded struct {
	*guests
	answer []byte
}

func (e encoded) Stats(ctx context.Context, of protocol.Target) (protocol.Stats, error) {
	if e.hang[of.Name] {
		<-ctx.Done()
		return protocol.Stats{}, ctx.Err()
	}
	var s protocol.Stats
	err := json.Unmarshal(e.answer, &s)
	return s.Sanitized(), err
}

func newEncoded(n int) encoded {
	counts := map[string]any{}
	count := func(part string, all ...string) {
		for _, name := range all {
			counts[part+"."+name] = uint64(1 << 40)
		}
	}
	count("cpu", "time", "user", "system")
	count("balloon", "current", "rss", "available", "unused", "usable", "disk_caches", "swap_in", "swap_out", "major_fault", "minor_fault")
	for i := range 4 {
		count(fmt.Sprint("vcpu.", i), "time", "wait", "delay", "state")
	}
	for i, name := range []string{"root", "data"} {
		count(fmt.Sprint("block.", i), "rd.reqs", "wr.reqs", "fl.reqs", "rd.bytes", "wr.bytes", "rd.times", "wr.times", "fl.times")
		counts[fmt.Sprintf("block.%d.name", i)] = name
	}
	count("net.0", "rx.bytes", "rx.pkts", "rx.errs", "rx.drop", "tx.bytes", "tx.pkts", "tx.errs", "tx.drop")
	counts["net.0.name"] = "default"
	s := protocol.NewStats(counts)
	s.Parts = append(s.Parts, protocol.Part{Group: protocol.Pin, Values: map[protocol.Stat]float64{protocol.PinCells: 32}},
		protocol.Part{Group: protocol.Load, Values: map[protocol.Stat]float64{protocol.Load1: 1, protocol.Load5: 1, protocol.Load15: 1}})
	for i := range 4 {
		s.Parts = append(s.Parts, protocol.Part{Group: protocol.FileSystem, Number: i, Name: fmt.Sprint("vda", i), MountPoint: fmt.Sprint("/", i), Type: "ext4",
			Values: map[protocol.Stat]float64{protocol.FileSystemTotal: 2, protocol.FileSystemUsed: 1}})
	}
	answer, _ := json.Marshal(s)
	e := encoded{newGuests(), answer}
	for i := range n {
		v := vmitest.New(vmitest.WithName(fmt.Sprint("vm-", i)), vmitest.WithCores(4), vmitest.WithContainerDisk("root", "x"), vmitest.WithContainerDisk("data", "x"), vmitest.WithMasquerade("default"))
		v.UID, v.Status.NodeName = types.UID("uid-"+v.Name), "n1"
		v.Labels = map[string]string{"kubevirt.io/domain": v.Name, "app": "web"}
		e.all = append(e.all, v)
	}
	return e
}

// BenchmarkScrape prints what a scrape of the VMIs of a node takes: the time, the processor time of
// the process, and how many series there are.
func BenchmarkScrape(b *testing.B) {
	for _, hung := range []int{0, 1} {
		b.Run(fmt.Sprintf("100 VMIs, %d hung", hung), func(b *testing.B) {
			e := newEncoded(100)
			for i := range hung {
				e.hang[e.all[i].Name] = true
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(New(Config{Guests: e, Fresh: time.Nanosecond}))
			h := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
			size, before := 0, used()
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
				size = w.Body.Len()
			}
			b.ReportMetric(float64((used()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/op")
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// used is the processor time of the process.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
