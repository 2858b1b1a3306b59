package libvirt

import (
	"context"
	"errors"
	"fmt"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// Stats are what a domain has used since it was created.
type Stats struct {
	// CPU is the processor time of QEMU, all its threads together. go-libvirt's
	// DomainGetCPUStats needs cgroups, which a pod's libvirt does not have.
	CPU time.Duration
	// VCPUs are the processor times of the guest's processors.
	VCPUs []time.Duration
	// Memory is the guest's memory.
	Memory MemoryStats
	// Disks and Interfaces are in the order of the domain.
	Disks      []DiskStats
	Interfaces []InterfaceStats
}

// MemoryStats are the guest's memory, in bytes. What only the guest knows is 0 as
// long as its balloon driver says nothing.
type MemoryStats struct {
	// BalloonBytes is what the balloon leaves to the guest.
	BalloonBytes int64
	// ResidentBytes is the memory of QEMU.
	ResidentBytes int64
	// AvailableBytes is what the guest sees, UnusedBytes what it uses for nothing, and
	// UsableBytes what it could use without swapping.
	AvailableBytes, UnusedBytes, UsableBytes int64
	// SwapInBytes and SwapOutBytes are what the guest has read from its swap and
	// written to it.
	SwapInBytes, SwapOutBytes int64
	// MajorFaults and MinorFaults are the page faults in the guest.
	MajorFaults, MinorFaults int64
}

// DiskStats are the requests of the guest to a disk.
type DiskStats struct {
	// Target is the disk's name on its bus, for example vda.
	Target                                        string
	ReadRequests, WriteRequests, FlushRequests    int64
	ReadBytes, WriteBytes                         int64
	ReadTime, WriteTime, FlushTime                time.Duration
	CapacityBytes, AllocationBytes, PhysicalBytes int64
}

// InterfaceStats are the frames of an interface as the guest sees them: libvirt exchanges
// what the tap has received and sent (virDomainNetTypeSharesHostView).
type InterfaceStats struct {
	// Device is the name of the tap device.
	Device                                                        string
	ReceivedBytes, ReceivedPackets, ReceivedErrors, ReceivedDrops int64
	SentBytes, SentPackets, SentErrors, SentDrops                 int64
}

// Stats returns what the domain of this name has used.
func (c *Connection) Stats(ctx context.Context, name string) (Stats, error) {
	p, err := c.stats(ctx, name, golibvirt.DomainStatsCPUTotal|golibvirt.DomainStatsBalloon|golibvirt.DomainStatsVCPU|golibvirt.DomainStatsInterface|golibvirt.DomainStatsBlock)
	if err != nil {
		return Stats{}, err
	}
	return newStats(p), nil
}

// stats are groups of the statistics of the domain of this name.
func (c *Connection) stats(ctx context.Context, name string, groups golibvirt.DomainStatsTypes) (params, error) {
	const op = "get the statistics of"
	records, err := of(ctx, c, op, name, func(d golibvirt.Domain) ([]golibvirt.DomainStatsRecord, error) {
		return c.rpc.ConnectGetAllDomainStats([]golibvirt.Domain{d}, uint32(groups), 0)
	})
	if err != nil {
		return nil, err
	}
	if len(records) != 1 {
		return nil, failure(op, name, errors.New("libvirt gave none"))
	}
	return newParams(records[0].Params), nil
}

func newStats(p params) Stats {
	s := Stats{CPU: time.Duration(p.number("cpu.time")), Memory: MemoryStats{
		BalloonBytes: p.kibibytes("balloon.current"), ResidentBytes: p.kibibytes("balloon.rss"),
		AvailableBytes: p.kibibytes("balloon.available"), UnusedBytes: p.kibibytes("balloon.unused"), UsableBytes: p.kibibytes("balloon.usable"),
		SwapInBytes: p.kibibytes("balloon.swap_in"), SwapOutBytes: p.kibibytes("balloon.swap_out"),
		MajorFaults: p.number("balloon.major_fault"), MinorFaults: p.number("balloon.minor_fault"),
	}}
	for n := range p.number("vcpu.maximum") {
		if t, ok := p[fmt.Sprintf("vcpu.%d.time", n)]; ok {
			s.VCPUs = append(s.VCPUs, time.Duration(params{"": t}.number("")))
		}
	}
	for n := range p.number("block.count") {
		at := func(key string) int64 { return p.number(fmt.Sprintf("block.%d.%s", n, key)) }
		s.Disks = append(s.Disks, DiskStats{
			Target:       p.text(fmt.Sprintf("block.%d.name", n)),
			ReadRequests: at("rd.reqs"), WriteRequests: at("wr.reqs"), FlushRequests: at("fl.reqs"),
			ReadBytes: at("rd.bytes"), WriteBytes: at("wr.bytes"),
			ReadTime: time.Duration(at("rd.times")), WriteTime: time.Duration(at("wr.times")), FlushTime: time.Duration(at("fl.times")),
			CapacityBytes: at("capacity"), AllocationBytes: at("allocation"), PhysicalBytes: at("physical"),
		})
	}
	for n := range p.number("net.count") {
		at := func(key string) int64 { return p.number(fmt.Sprintf("net.%d.%s", n, key)) }
		s.Interfaces = append(s.Interfaces, InterfaceStats{
			Device:        p.text(fmt.Sprintf("net.%d.name", n)),
			ReceivedBytes: at("rx.bytes"), ReceivedPackets: at("rx.pkts"), ReceivedErrors: at("rx.errs"), ReceivedDrops: at("rx.drop"),
			SentBytes: at("tx.bytes"), SentPackets: at("tx.pkts"), SentErrors: at("tx.errs"), SentDrops: at("tx.drop"),
		})
	}
	return s
}

// MeasureDirtyRate begins to measure how fast the guest of the domain of this name
// changes its memory, for whole seconds of a period from 1 to 60.
func (c *Connection) MeasureDirtyRate(ctx context.Context, name string, period time.Duration) error {
	return c.with(ctx, "measure the dirty memory of", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainStartDirtyRateCalc(d, int32(period/time.Second), 0)
	})
}

// dirtyRateMeasured is the state of a measurement that is over.
const dirtyRateMeasured = int64(golibvirt.DomainDirtyrateMeasured)

// DirtyRate is the result of the last measurement, in bytes for each second. It is not
// ok as long as none is over.
func (c *Connection) DirtyRate(ctx context.Context, name string) (bytes int64, ok bool, err error) {
	p, err := c.stats(ctx, name, golibvirt.DomainStatsDirtyrate)
	return p.number("dirtyrate.megabytes_per_second") << 20, p.number("dirtyrate.calc_status") == dirtyRateMeasured, err
}
