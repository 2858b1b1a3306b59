package libvirt

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// statGroups are libvirt's groups of statistics, by the first word of their names.
var statGroups = map[protocol.Group]golibvirt.DomainStatsTypes{
	protocol.CPU: golibvirt.DomainStatsCPUTotal, protocol.Balloon: golibvirt.DomainStatsBalloon, protocol.VCPU: golibvirt.DomainStatsVCPU,
	protocol.Block: golibvirt.DomainStatsBlock, protocol.Net: golibvirt.DomainStatsInterface,
}

// Counted are the statistics of the domain of this name that are in the groups: numbers
// and texts, by libvirt's names for them. It does not wait for a domain that libvirt does
// something else with: what it would have to wait for is not there.
func (c *Connection) Counted(ctx context.Context, name string, groups ...protocol.Group) (map[string]any, error) {
	const op = "count what is used by"
	var types golibvirt.DomainStatsTypes
	for _, g := range groups {
		if statGroups[g] == 0 {
			return nil, fmt.Errorf("libvirt has no statistics %q", g)
		}
		types |= statGroups[g]
	}
	records := make(chan []golibvirt.DomainStatsRecord, 1) // the call may go on when ctx has ended
	err := c.with(ctx, op, name, func(d golibvirt.Domain) error {
		all, err := c.rpc.ConnectGetAllDomainStats([]golibvirt.Domain{d}, uint32(types), uint32(golibvirt.ConnectGetAllDomainsStatsNowait))
		records <- all
		return err
	})
	if err != nil {
		return nil, err
	}
	all := <-records
	if len(all) != 1 {
		return nil, failure(op, name, errors.New("libvirt gave none"))
	}
	return newParams(all[0].Params), nil
}

// CountJob adds to the statistics the numbers of the job of the domain of this name, such as
// its migration, by libvirt's names for them after "job.". Without a job it adds none.
func (c *Connection) CountJob(ctx context.Context, name string, to map[string]any) {
	all, err := of(ctx, c, "get the job of", name, func(d golibvirt.Domain) ([]golibvirt.TypedParam, error) {
		_, all, err := c.rpc.DomainGetJobStats(d, 0)
		return all, err
	})
	if err != nil {
		return
	}
	for field, value := range newParams(all) {
		to[string(protocol.Job)+"."+field] = value
	}
}

// maxNodeCPUs is how many processors of a node are looked at.
const maxNodeCPUs = 4096

// PinCells is on how many processors of the node each of so many of the guest may run, added
// up. libvirt keeps it, and asks nothing for it.
func (c *Connection) PinCells(ctx context.Context, name string, processors int) (int, error) {
	maps, err := of(ctx, c, "get the affinity of", name, func(d golibvirt.Domain) ([]byte, error) {
		maps, _, err := c.rpc.DomainGetVcpuPinInfo(d, int32(processors), maxNodeCPUs/8, 0)
		return maps, err
	})
	cells := 0
	for _, b := range maps {
		cells += bits.OnesCount8(b)
	}
	return cells, err
}

// GuestLoad are the averages of the load of the guest over 1, 5 and 15 minutes, as the agent
// in the guest of the domain of this name says. One before QEMU 10.0 does not know.
func (c *Connection) GuestLoad(ctx context.Context, name string) ([3]float64, error) {
	said, err := ask[struct {
		One     float64 `json:"load1m"`
		Five    float64 `json:"load5m"`
		Fifteen float64 `json:"load15m"`
	}](ctx, c, name, "guest-get-load")
	return [3]float64{said.One, said.Five, said.Fifteen}, err
}
