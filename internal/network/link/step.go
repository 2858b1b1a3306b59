package link

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/podvisor/podvisor/network"
)

// step is one change of a namespace. Links have the names in it that they have
// when the step is taken.
type step interface{ step() }

type (
	create struct {
		Name  string
		Kind  network.Kind
		MAC   string
		MTU   int
		Owner network.Owner
		// MultiQueue is for a tap device.
		MultiQueue bool
	}
	remove  struct{ Link string }
	rename  struct{ Link, Name string }
	setDown struct{ Link string }
	setUp   struct{ Link string }
	setMAC  struct{ Link, MAC string }
	setMTU  struct {
		Link string
		MTU  int
	}
	setMaster    struct{ Link, Master string }
	stopLearning struct{ Link string }
	stopFlooding struct{ Link string }
	// forwardGroups is for a bridge, checkOffloads for a tap device.
	forwardGroups struct{ Link string }
	checkOffloads struct{ Link string }
	// keepMAC makes the port the way to the address for good.
	keepMAC    struct{ Link, MAC string }
	addAddress struct {
		Link    string
		Address netip.Prefix
	}
	removeAddress struct {
		Link    string
		Address netip.Prefix
	}
	remember struct {
		Link  string
		Route network.Route
	}
	forget struct {
		Link  string
		Route network.Route
	}
	setSysctl struct{ network.Sysctl }
)

func (create) step()        {}
func (remove) step()        {}
func (rename) step()        {}
func (setDown) step()       {}
func (setUp) step()         {}
func (setMAC) step()        {}
func (setMTU) step()        {}
func (setMaster) step()     {}
func (stopLearning) step()  {}
func (stopFlooding) step()  {}
func (forwardGroups) step() {}
func (checkOffloads) step() {}
func (keepMAC) step()       {}
func (addAddress) step()    {}
func (removeAddress) step() {}
func (remember) step()      {}
func (forget) step()        {}
func (setSysctl) step()     {}

// steps are the changes that make a namespace what cfg says, in the order in
// which they can be made. have is the namespace as it is, sysctls the settings
// that are in force, by key.
func steps(have network.State, sysctls map[string]string, cfg network.Config) ([]step, error) {
	d := difference{links: slices.Clone(have.Links), sysctls: sysctls, wanted: cfg.Links}
	var faults []error
	for _, want := range cfg.Links {
		if err := d.link(want); err != nil {
			faults = append(faults, err)
		}
	}
	d.settings(cfg.Sysctls)
	for _, want := range cfg.Links {
		if l := d.interim(want); l != nil && string(want.Kind) == l.Kind {
			d.add(rename{l.Name, want.Name})
		}
	}
	return d.steps, errors.Join(faults...)
}

// difference collects the steps from what is to what must be.
type difference struct {
	// links are the links as they are after the steps, as far as names go.
	links   []network.Link
	sysctls map[string]string
	wanted  []network.LinkConfig
	steps   []step
}

func (d *difference) add(s ...step) { d.steps = append(d.steps, s...) }

// link adds the steps for one link.
func (d *difference) link(want network.LinkConfig) error {
	l, err := d.existing(want)
	if err != nil {
		return err
	}
	d.settings(want.Sysctls)
	d.attributes(l, want)
	if want.Kind != network.Uplink || want.Master != "" {
		d.addresses(l, want.Addresses)
	}
	if !want.Down && !l.Up {
		d.add(setUp{l.Name})
	}
	d.framesTo(l, want)
	for _, r := range l.Remembered {
		if !slices.Contains(want.Remember, r) {
			d.add(forget{l.Name, r})
		}
	}
	for _, r := range want.Remember {
		if !slices.Contains(l.Remembered, r) {
			d.add(remember{l.Name, r})
		}
	}
	return nil
}

// existing finds the link, or adds the steps to make it. What it returns has its
// final name, unless another link has that name for now.
func (d *difference) existing(want network.LinkConfig) (network.Link, error) {
	if want.Kind == network.Uplink {
		return d.uplink(want)
	}
	l := d.named(want.Name)
	if n := d.interim(want); n != nil || want.Interim != "" && l != nil && d.isUplink(*l) {
		// The name is, or was, that of a link which gets another one.
		l, want.Name = n, want.Interim
	}
	if l != nil && l.Kind != string(want.Kind) {
		return network.Link{}, fmt.Errorf("%s: there is one already, of the kind %q and not %q", about(want.Interface, want.Name), l.Kind, want.Kind)
	}
	if l != nil && want.Kind == network.Tap && (l.Owner == nil || *l.Owner != want.Owner || l.MultiQueue != want.MultiQueue) {
		d.add(remove{l.Name})
		d.links = slices.DeleteFunc(d.links, func(o network.Link) bool { return o.Name == want.Name })
		l = nil
	}
	if l != nil {
		return *l, nil
	}
	d.add(create{Name: want.Name, Kind: want.Kind, MAC: want.MAC, MTU: want.MTU, Owner: want.Owner, MultiQueue: want.MultiQueue})
	made := network.Link{Name: want.Name, Kind: string(want.Kind)}
	if want.Kind != network.Tap {
		made.MAC, made.MTU = want.MAC, want.MTU
	}
	d.links = append(d.links, made)
	return made, nil
}

// uplink finds a link of the pod and gives it its name. Whatever is to be changed
// about it beside settings is changed while it is down.
func (d *difference) uplink(want network.LinkConfig) (network.Link, error) {
	i := slices.IndexFunc(d.links, func(l network.Link) bool { return l.Index == want.Index })
	if i < 0 {
		return network.Link{}, fmt.Errorf("%s: there is none with the index %d", about(want.Interface, want.Name), want.Index)
	}
	l := &d.links[i]
	if l.Up && (l.Name != want.Name || want.MAC != "" && l.MAC != want.MAC) {
		d.add(setDown{l.Name})
		l.Up = false
	}
	if l.Name != want.Name {
		d.add(rename{l.Name, want.Name})
		l.Name = want.Name
	}
	return *l, nil
}

func (d *difference) isUplink(l network.Link) bool {
	return slices.ContainsFunc(d.wanted, func(w network.LinkConfig) bool {
		return w.Kind == network.Uplink && w.Index == l.Index
	})
}

func (d *difference) attributes(l network.Link, want network.LinkConfig) {
	if want.MAC != "" && l.MAC != want.MAC {
		d.add(setMAC{l.Name, want.MAC})
	}
	if want.MTU != 0 && l.MTU != want.MTU {
		d.add(setMTU{l.Name, want.MTU})
	}
	if want.ForwardGroups && !l.ForwardsGroups {
		d.add(forwardGroups{l.Name})
	}
	if want.CheckOffloads && !l.ChecksOffloads {
		d.add(checkOffloads{l.Name})
	}
	if want.Master != "" && l.Master != want.Master {
		d.add(setMaster{l.Name, want.Master})
		l.Learning, l.Flooding = true, true
	}
	if want.NoLearning && l.Learning {
		d.add(stopLearning{l.Name})
	}
	if want.NoFlooding && l.Flooding {
		d.add(stopFlooding{l.Name})
	}
}

// framesTo gives the frames for the link's own address to another port. The kernel takes
// them back when the link becomes a port, and when it gets the address.
func (d *difference) framesTo(l network.Link, want network.LinkConfig) {
	if want.FramesTo == "" {
		return
	}
	to := d.named(want.FramesTo)
	if to == nil || !slices.Contains(to.Static, want.MAC) || l.Master != want.Master || l.MAC != want.MAC {
		d.add(keepMAC{want.FramesTo, want.MAC})
	}
}

func (d *difference) addresses(l network.Link, want []netip.Prefix) {
	for _, a := range want {
		if !slices.Contains(l.Addresses, a) {
			d.add(addAddress{l.Name, a})
		}
	}
	for _, a := range l.Addresses {
		if !slices.Contains(want, a) {
			d.add(removeAddress{l.Name, a})
		}
	}
}

func (d *difference) settings(want []network.Sysctl) {
	for _, s := range want {
		if d.sysctls[s.Key] != s.Value {
			d.add(setSysctl{s})
		}
	}
}

// interim returns the link under its interim name, or nil.
func (d *difference) interim(want network.LinkConfig) *network.Link {
	if want.Interim == "" {
		return nil
	}
	return d.named(want.Interim)
}

func (d *difference) named(name string) *network.Link {
	for i := range d.links {
		if d.links[i].Name == name {
			return &d.links[i]
		}
	}
	return nil
}
