package libvirt

import (
	"context"
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

// guestFact is something that only the agent knows of a guest and that is reported as
// long as there is one: its changes are no events.
type guestFact struct {
	// command is what the agent is asked.
	command string
	// read reads the answer, and returns what it says of the guest. A guest says what it
	// likes: no error repeats it, and nothing but people may rely on it.
	read func(answer agentAnswer) (known func(*protocol.State), err error)
	// drop takes it out of a state: without an agent it is not known.
	drop func(*protocol.State)
}

// guestFacts are all of them. A fact that the handler shall read is an entry here.
var guestFacts = []guestFact{
	{
		command: "guest-network-get-interfaces",
		read: func(answer agentAnswer) (func(*protocol.State), error) {
			all, err := agentInterfaces(answer)
			return func(s *protocol.State) { s.Interfaces = all }, err
		},
		drop: func(s *protocol.State) { s.Interfaces = nil },
	},
}

// DropGuest takes out of a state what [Connection.ObserveGuest] makes known.
func DropGuest(s *protocol.State) {
	for _, f := range guestFacts {
		f.drop(s)
	}
}

// ObserveGuest asks the agent in the guest of the domain of this name for all that it is
// asked again and again, and returns what it says. What it did not say, for which there
// is an error, is not changed by that. It takes up to ten seconds if the agent does not
// answer, and then asks it nothing else.
func (c *Connection) ObserveGuest(ctx context.Context, name string) (known func(*protocol.State), err error) {
	return observed(guestFacts, func(command string) (agentAnswer, error) {
		return c.askAgent(ctx, name, `{"execute":"`+command+`"}`)
	})
}

// observed are the facts that the agent says.
func observed(facts []guestFact, ask func(command string) (agentAnswer, error)) (known func(*protocol.State), err error) {
	var all []func(*protocol.State)
	var faults []error
	for _, f := range facts {
		answer, err := ask(f.command)
		if err != nil && !refuses(err) {
			faults = append(faults, err)
			break
		}
		var says func(*protocol.State)
		if err == nil {
			says, err = f.read(answer)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", f.command, err))
			continue
		}
		all = append(all, says)
	}
	return func(s *protocol.State) {
		for _, says := range all {
			says(s)
		}
	}, errors.Join(faults...)
}

// agentInterfaces reads the answer to guest-network-get-interfaces, but for the guest's
// loopback.
func agentInterfaces(answer agentAnswer) ([]protocol.Interface, error) {
	var all struct {
		Return []struct {
			Name      string `json:"name"`
			MAC       string `json:"hardware-address"`
			Addresses []struct {
				Address string `json:"ip-address"`
			} `json:"ip-addresses"`
		} `json:"return"`
	}
	if err := answer.decode(&all); err != nil {
		return nil, fmt.Errorf("its answer is not what guest-network-get-interfaces answers: %w", err)
	}
	var out []protocol.Interface
	for _, i := range all.Return {
		found := protocol.Interface{Name: plain(i.Name), MAC: plain(i.MAC)}
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
