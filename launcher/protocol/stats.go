package protocol

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Stats are what is counted of a domain, for metrics. They are asked for when metrics are
// read, and nothing is decided by them.
type Stats struct {
	// Parts are the parts of the domain that something is counted of.
	Parts []Part `json:"parts,omitempty"`
}

// Part is a part of a domain, with what is counted of it.
type Part struct {
	// Group is the kind of part.
	Group Group `json:"group"`
	// Number is its place among those of its kind, from 0 on.
	Number int `json:"number,omitempty"`
	// Values are what is counted of it. What libvirt does not report is not there.
	Values map[Stat]float64 `json:"values"`
}

// Group is a kind of part of a domain: the first word of the names that libvirt gives its
// statistics.
type Group string

// VCPU is the group of the processors of the guest.
const VCPU Group = "vcpu"

// Stat is what is counted: the name that libvirt gives it, without the number of the part.
type Stat string

// What is counted. Names and units are libvirt's.
const (
	// VCPUTime is how long a processor of the guest has run, in nanoseconds.
	VCPUTime Stat = "vcpu.time"
	// VCPUState is what it does, as virVcpuState counts: 0 offline, 1 running, 2 blocked.
	VCPUState Stat = "vcpu.state"
)

// stats are all that a launcher sends, and all that is read of what it sends. A metric of
// another one adds it here and above, and there is nothing else that fills it.
var stats = []Stat{VCPUTime, VCPUState}

// maxParts is how many parts are read.
const maxParts = 1024

// place is where a part is.
type place struct {
	Group
	number int
}

// Group is the group of parts that it is counted of.
func (s Stat) Group() Group {
	g, _, _ := strings.Cut(string(s), ".")
	return Group(g)
}

// StatGroups are the groups of which anything is counted: those to ask libvirt for.
func StatGroups() []Group {
	var all []Group
	for _, s := range stats {
		if !slices.Contains(all, s.Group()) {
			all = append(all, s.Group())
		}
	}
	return all
}

// NewStats takes what is counted out of libvirt's statistics of a domain, which are
// numbers and texts by their names: vcpu.time of part 3 is "vcpu.3.time".
func NewStats(libvirt map[string]any) Stats {
	parts := map[place]Part{}
	for name, value := range libvirt {
		s, number, ok := parseStat(name)
		v, isNumber := toFloat(value)
		if !ok || !isNumber {
			continue
		}
		k := place{s.Group(), number}
		if parts[k].Values == nil {
			parts[k] = Part{Group: k.Group, Number: number, Values: map[Stat]float64{}}
		}
		parts[k].Values[s] = v
	}
	return Stats{slices.SortedFunc(maps.Values(parts), func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), a.Number-b.Number)
	})}
}

// parseStat reads the name of a statistic, with the number of its part or without. It is
// not ok for one that is not counted.
func parseStat(name string) (s Stat, number int, ok bool) {
	group, rest, _ := strings.Cut(name, ".")
	if first, last, found := strings.Cut(rest, "."); found {
		if n, err := strconv.ParseUint(first, 10, 16); err == nil {
			number, rest = int(n), last
		}
	}
	s = Stat(group + "." + rest)
	return s, number, slices.Contains(stats, s)
}

func toFloat(value any) (float64, bool) {
	switch n := value.(type) {
	case int32:
		return float64(n), true
	case uint32:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// Of are the parts of a group.
func (s Stats) Of(g Group) []Part {
	return slices.DeleteFunc(slices.Clone(s.Parts), func(p Part) bool { return p.Group != g })
}

// Sanitized returns the stats without what is not counted, parts that are there already,
// and numbers that are negative or larger than any count.
func (s Stats) Sanitized() Stats {
	var out Stats
	seen := map[place]bool{}
	for _, p := range s.Parts {
		k := place{p.Group, p.Number}
		if values := p.sanitized(); len(values) > 0 && len(out.Parts) < maxParts && 0 <= p.Number && p.Number < maxParts && !seen[k] {
			seen[k] = true
			out.Parts = append(out.Parts, Part{Group: p.Group, Number: p.Number, Values: values})
		}
	}
	return out
}

// sanitized are the values of the part that are counted of its group.
func (p Part) sanitized() map[Stat]float64 {
	out := map[Stat]float64{}
	for _, s := range stats {
		if v, ok := p.Values[s]; ok && s.Group() == p.Group && 0 <= v && v <= math.MaxUint64 {
			out[s] = v
		}
	}
	return out
}
