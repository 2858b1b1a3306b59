package protocol

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/podvisor/podvisor/internal/shorten"
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
	// Name is the name of a disk or an interface in the spec, or that of the device of a
	// file system in the guest. Other parts have none.
	Name string `json:"name,omitempty"`
	// MountPoint and Type are where a file system is mounted and what it is, as the guest
	// says. Other parts have none.
	MountPoint string `json:"mountPoint,omitempty"`
	Type       string `json:"type,omitempty"`
	// Values are what is counted of it. What libvirt does not report is not there.
	Values map[Stat]float64 `json:"values"`
}

// Group is a kind of part of a domain: the first word of the names that libvirt gives its
// statistics.
type Group string

// The groups that libvirt counts in one call.
const (
	// CPU is QEMU with all its threads.
	CPU Group = "cpu"
	// Balloon is the memory of the domain.
	Balloon Group = "balloon"
	// VCPU are the processors of the guest.
	VCPU Group = "vcpu"
	// Block are the disks.
	Block Group = "block"
	// Net are the interfaces.
	Net Group = "net"
)

// The groups that are asked for besides.
const (
	// Pin is where the processors of the guest may run.
	Pin Group = "pin"
	// FileSystem are the mounted file systems of the guest, as its agent says.
	FileSystem Group = "fs"
	// Load is the load of the guest, as its agent says.
	Load Group = "load"
	// Job is the migration that sends the guest.
	Job Group = "job"
)

// Stat is what is counted: the name that libvirt gives it, without the number of the part.
type Stat string

// What is counted. Names and units are libvirt's: of times ns, of the balloon KiB.
const (
	CPUTime   Stat = "cpu.time"
	CPUUser   Stat = "cpu.user"
	CPUSystem Stat = "cpu.system"

	// VCPUTime is how long a processor of the guest has run.
	VCPUTime Stat = "vcpu.time"
	// VCPUState is what it does, as virVcpuState counts: 0 offline, 1 running, 2 blocked.
	VCPUState Stat = "vcpu.state"
	// VCPUWait and VCPUDelay are how long it waited for I/O, and for a processor of the node.
	VCPUWait  Stat = "vcpu.wait"
	VCPUDelay Stat = "vcpu.delay"

	BalloonCurrent   Stat = "balloon.current"
	BalloonRSS       Stat = "balloon.rss"
	BalloonAvailable Stat = "balloon.available"
	BalloonUnused    Stat = "balloon.unused"
	BalloonUsable    Stat = "balloon.usable"
	BalloonCached    Stat = "balloon.disk_caches"
	BalloonSwapIn    Stat = "balloon.swap_in"
	BalloonSwapOut   Stat = "balloon.swap_out"
	// MajorFault and MinorFault are numbers of faults.
	MajorFault Stat = "balloon.major_fault"
	MinorFault Stat = "balloon.minor_fault"

	ReadRequests  Stat = "block.rd.reqs"
	WriteRequests Stat = "block.wr.reqs"
	FlushRequests Stat = "block.fl.reqs"
	ReadBytes     Stat = "block.rd.bytes"
	WriteBytes    Stat = "block.wr.bytes"
	ReadTimes     Stat = "block.rd.times"
	WriteTimes    Stat = "block.wr.times"
	FlushTimes    Stat = "block.fl.times"

	ReceivedBytes      Stat = "net.rx.bytes"
	ReceivedPackets    Stat = "net.rx.pkts"
	ReceivedErrors     Stat = "net.rx.errs"
	ReceivedDropped    Stat = "net.rx.drop"
	TransmittedBytes   Stat = "net.tx.bytes"
	TransmittedPackets Stat = "net.tx.pkts"
	TransmittedErrors  Stat = "net.tx.errs"
	TransmittedDropped Stat = "net.tx.drop"

	// PinCells is on how many processors of the node each of the guest may run, added up.
	PinCells Stat = "pin.cells"

	// FileSystemTotal and FileSystemUsed are bytes.
	FileSystemTotal Stat = "fs.total-bytes"
	FileSystemUsed  Stat = "fs.used-bytes"
	Load1           Stat = "load.1m"
	Load5           Stat = "load.5m"
	Load15          Stat = "load.15m"

	JobTotal     Stat = "job.data_total"
	JobProcessed Stat = "job.data_processed"
	JobRemaining Stat = "job.data_remaining"
	// JobDirtyPages is how many pages, of JobPageSize bytes each, the guest changes in a second.
	JobDirtyPages Stat = "job.memory_dirty_rate"
	JobPageSize   Stat = "job.memory_page_size"
	// JobSpeed is how many bytes of memory are sent in a second.
	JobSpeed Stat = "job.memory_bps"
)

// stats are all that a launcher sends, and all that is read of what it sends. A metric of
// another one adds it here and above, and there is nothing else that fills it.
var stats = []Stat{
	CPUTime, CPUUser, CPUSystem,
	BalloonCurrent, BalloonRSS, BalloonAvailable, BalloonUnused, BalloonUsable, BalloonCached, BalloonSwapIn, BalloonSwapOut, MajorFault, MinorFault,
	VCPUTime, VCPUState, VCPUWait, VCPUDelay,
	ReadRequests, WriteRequests, FlushRequests, ReadBytes, WriteBytes, ReadTimes, WriteTimes, FlushTimes,
	ReceivedBytes, ReceivedPackets, ReceivedErrors, ReceivedDropped, TransmittedBytes, TransmittedPackets, TransmittedErrors, TransmittedDropped,
	PinCells, FileSystemTotal, FileSystemUsed, Load1, Load5, Load15,
	JobTotal, JobProcessed, JobRemaining, JobDirtyPages, JobPageSize, JobSpeed,
}

const (
	// maxParts is how many parts are read.
	maxParts = 1024
	// maxPlace is the longest text of a file system, in bytes.
	maxPlace = 256
)

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

// StatGroups are the groups that libvirt counts in one call.
func StatGroups() []Group { return []Group{CPU, Balloon, VCPU, Block, Net} }

// NewStats takes what is counted out of libvirt's statistics of a domain, which are
// numbers and texts by their names: vcpu.time of part 3 is "vcpu.3.time". The name of a disk
// or an interface is that of its device.
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
			device, _ := libvirt[fmt.Sprintf("%s.%d.name", k.Group, number)].(string)
			parts[k] = Part{Group: k.Group, Number: number, Name: device, Values: map[Stat]float64{}}
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
// and numbers that are negative or larger than any count. Texts are short, and printable.
func (s Stats) Sanitized() Stats {
	var out Stats
	seen := map[place]bool{}
	for _, p := range s.Parts {
		k := place{p.Group, p.Number}
		if values := p.sanitized(); len(values) > 0 && len(out.Parts) < maxParts && 0 <= p.Number && p.Number < maxParts && !seen[k] {
			seen[k] = true
			kept := Part{Group: p.Group, Number: p.Number, Values: values}
			switch p.Group {
			case FileSystem:
				kept.MountPoint, kept.Type = placeText(p.MountPoint), placeText(p.Type)
				fallthrough
			case Block, Net:
				kept.Name = placeText(p.Name)
			}
			out.Parts = append(out.Parts, kept)
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

// placeText is a text about a part that becomes a label.
func placeText(s string) string { return shorten.Head(printable(s), maxPlace) }
