package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// Of what an agent says of interfaces, so many are read, and so many addresses of each. A
// guest that is a router for containers has more, which no reader needs.
const (
	mostInterfaces = 32
	mostAddresses  = 16
)

// AgentInterfaces asks the agent in the guest of the domain of this name for the
// guest's interfaces, but for its loopback. It takes up to ten seconds if the agent does
// not answer. A guest says what it likes: nothing but people may rely on it.
func (c *Connection) AgentInterfaces(ctx context.Context, name string) ([]protocol.Interface, error) {
	answer, err := c.askAgent(ctx, name, `{"execute":"guest-network-get-interfaces"}`)
	if err != nil {
		return nil, err
	}
	all, err := agentInterfaces(answer)
	return all, failure(askAgent, name, err)
}

// agentInterfaces reads the answer to guest-network-get-interfaces. No error repeats it.
func agentInterfaces(answer string) ([]protocol.Interface, error) {
	if len(answer) > maxAnswer {
		return nil, fmt.Errorf("its answer has %d bytes, and at most %d are read", len(answer), maxAnswer)
	}
	var said struct {
		Return []struct {
			Name      string `json:"name"`
			MAC       string `json:"hardware-address"`
			Addresses []struct {
				Address string `json:"ip-address"`
			} `json:"ip-addresses"`
		} `json:"return"`
	}
	if json.Unmarshal([]byte(answer), &said) != nil {
		return nil, errors.New("its answer is not what guest-network-get-interfaces answers")
	}
	var out []protocol.Interface
	for _, i := range said.Return {
		found := protocol.Interface{Name: i.Name, MAC: i.MAC}
		loopback := false
		for _, a := range i.Addresses {
			parsed, err := netip.ParseAddr(a.Address)
			if err != nil || len(found.Addresses) == mostAddresses {
				continue
			}
			loopback = loopback || parsed.IsLoopback()
			found.Addresses = append(found.Addresses, parsed.WithZone("").String())
		}
		if !loopback && i.MAC != "" && len(out) < mostInterfaces {
			out = append(out, found)
		}
	}
	return out, nil
}
