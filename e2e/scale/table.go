package scale

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// ms is the time for each of n objects, in milliseconds.
func ms(d time.Duration, n int) float64 { return float64(d.Microseconds()) / 1000 / float64(n) }

// details prints what was requested in each phase of a run, for each object.
func details(out io.Writer, m measured) {
	_, _ = fmt.Fprintf(out, "\nrequests of %d of kind %s, for each\n", m.n, m.kind)
	for _, p := range []struct {
		what string
		of   step
	}{{"created to Running", m.start}, {fmt.Sprintf("idle for %.0f s, in all", m.idleSeconds), m.idle}, {"deleted", m.ended}} {
		_, _ = fmt.Fprintf(out, "  %s\n", p.what)
		n := m.n
		if p.of.requests != nil && strings.Contains(p.what, "in all") {
			n = 1
		}
		for _, component := range slices.Sorted(maps.Keys(p.of.requests)) {
			printRequests(out, component, p.of.requests[component], n)
		}
	}
}

// printRequests prints the requests of a component, for each of n objects.
func printRequests(out io.Writer, component string, of counts, n int) {
	var each []string
	for _, what := range slices.SortedFunc(maps.Keys(of), func(a, b string) int { return of[b]*1000 - of[a]*1000 + strings.Compare(a, b) }) {
		each = append(each, fmt.Sprintf("%.2f %s", float64(of[what])/float64(n), what))
	}
	_, _ = fmt.Fprintf(out, "    %-18s %5.2f  %s\n", component, float64(of.sum())/float64(n), strings.Join(each, ", "))
}

// table prints all runs, one line for each.
func table(out io.Writer, all []measured) {
	if len(all) == 0 {
		return
	}
	_, _ = fmt.Fprint(out, `
for each object                to Running                                              idle, in all          deleted                                  events
kind     n   requests  writes  controller  API server    etcd  seconds  RSS slope   controller  API server   requests  writes  controller  API server  seconds   made  lost  repeated  others
                                     ms          ms      ms               kB/each      ms/s        ms/s                              ms          ms
`)
	for _, m := range all {
		s, i, e := m.start, m.idle, m.ended
		of := func(s step) float64 { return float64(s.requests["virt-controller"].sum()) / float64(m.n) }
		writes := func(s step) float64 { return float64(s.requests["virt-controller"].writes()) / float64(m.n) }
		_, _ = fmt.Fprintf(out, "%-4s %5d %10.2f %7.2f %11.1f %11.1f %7.1f %8.1f %10.1f %12.1f %11.1f %10.2f %7.2f %11.1f %11.1f %8.1f %6d %5d %9d %7d\n",
			m.kind, m.n, of(s), writes(s), ms(s.controller, m.n), ms(s.apiserver, m.n), ms(s.etcd, m.n), s.seconds, float64(s.rss)/1e3/float64(m.n),
			ms(i.controller, 1)/max(i.seconds, 1), ms(i.apiserver, 1)/max(i.seconds, 1),
			of(e), writes(e), ms(e.controller, m.n), ms(e.apiserver, m.n), e.seconds, m.events.made, m.events.lost, m.events.repeated, m.events.others)
		for _, reason := range slices.Sorted(maps.Keys(m.events.missing)) {
			_, _ = fmt.Fprintf(out, "  of %d VMIs the event %s is lost\n", m.events.missing[reason], reason)
		}
		if m.repeated > 0 {
			_, _ = fmt.Fprintf(out, "  %d requests of users failed and were repeated: the host is too busy, and the seconds say nothing\n", m.repeated)
		}
		if n := s.restarts + i.restarts + e.restarts; n > 0 {
			_, _ = fmt.Fprintf(out, "  virt-controller ended and was started again %d times: the host is too busy for its lease, and the slope says nothing\n", n)
		}
	}
	_, _ = fmt.Fprintln(out, "requests and writes are those of virt-controller, without events, watches and leases; controller, API server and etcd are processor time")
}

// handlerTable prints what one node's VMIs cost its virt-handler.
func handlerTable(out io.Writer, h handled) {
	_, _ = fmt.Fprintf(out, "\nvirt-handler of a node with %d VMIs\n", h.n)
	_, _ = fmt.Fprintf(out, "  all start at once   %6.1f s, for each %6.1f ms of processor time, %6.1f kB of RSS\n", h.start.seconds, ms(h.start.processor, h.n), float64(h.start.rss)/1e3/float64(h.n))
	_, _ = fmt.Fprintf(out, "  idle                %6.1f s, for each %6.3f ms of processor time per second, %6.1f kB of RSS more\n", h.idle.seconds, ms(h.idle.processor, h.n)/h.idle.seconds, float64(h.idle.rss)/1e3/float64(h.n))
	_, _ = fmt.Fprintf(out, "  deleted             %6.1f s, for each %6.1f ms of processor time, %6.1f kB of RSS\n", h.ended.seconds, ms(h.ended.processor, h.n), float64(h.ended.rss)/1e3/float64(h.n))
	printRequests(out, "start", h.start.requests, h.n)
	printRequests(out, "idle", h.idle.requests, h.n)
	printRequests(out, "deleted", h.ended.requests, h.n)
}
