package libvirt

import (
	"context"
	"errors"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// statGroups are libvirt's groups of statistics, by the first word of their names.
var statGroups = map[protocol.Group]golibvirt.DomainStatsTypes{
	"cpu": golibvirt.DomainStatsCPUTotal, "balloon": golibvirt.DomainStatsBalloon, protocol.VCPU: golibvirt.DomainStatsVCPU,
	"net": golibvirt.DomainStatsInterface, "block": golibvirt.DomainStatsBlock, "dirtyrate": golibvirt.DomainStatsDirtyrate,
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
