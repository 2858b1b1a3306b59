package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"slices"
)

// driveDir is the folder of a ConfigDrive disk that is read.
const driveDir = "openstack/latest/"

// parseDrive reads the files of a ConfigDrive disk.
func parseDrive(disk fs.FS) (seed, error) {
	s := seed{found: true}
	var errs []error
	read := func(name string, parse func([]byte) error) {
		b, err := fs.ReadFile(disk, driveDir+name)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err == nil {
			err = parse(b)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	read("meta_data.json", func(b []byte) error {
		var meta struct {
			UUID, Hostname string
			Keys           map[string]string `json:"public_keys"`
		}
		err := json.Unmarshal(b, &meta)
		s.meta = metaData{InstanceID: meta.UUID, Hostname: meta.Hostname, Keys: slices.Sorted(maps.Values(meta.Keys))}
		return err
	})
	read("user_data", func(b []byte) (err error) {
		s.user, err = parseUserData(b)
		return err
	})
	read("network_data.json", func(b []byte) (err error) {
		s.network, err = parseNetworkData(b)
		return err
	})
	return s, errors.Join(errs...)
}

// networkData is what this guest understands of OpenStack's network_data.json:
// links with an IPv4 address or DHCP, and name servers.
type networkData struct {
	Links []struct {
		ID  string `json:"id"`
		MAC string `json:"ethernet_mac_address"`
		MTU int    `json:"mtu"`
	} `json:"links"`
	Networks []struct {
		Link    string     `json:"link"`
		Type    string     `json:"type"`
		Address netip.Addr `json:"ip_address"`
		Netmask string     `json:"netmask"`
	} `json:"networks"`
	Services []struct {
		Type    string `json:"type"`
		Address string `json:"address"`
	} `json:"services"`
}

func parseNetworkData(b []byte) (networkConfig, error) {
	var d networkData
	if err := json.Unmarshal(b, &d); err != nil {
		return networkConfig{}, err
	}
	conf := networkConfig{Version: 2, Ethernets: map[string]ethernet{}}
	for _, l := range d.Links {
		e := ethernet{MTU: l.MTU}
		e.Match.MACAddress = l.MAC
		for _, s := range d.Services {
			if s.Type == "dns" {
				e.Nameservers.Addresses = append(e.Nameservers.Addresses, s.Address)
			}
		}
		conf.Ethernets[l.ID] = e
	}
	for _, n := range d.Networks {
		e, ok := conf.Ethernets[n.Link]
		switch {
		case !ok:
			return networkConfig{}, fmt.Errorf("network of link %q, which is not there", n.Link)
		case n.Type == "ipv4_dhcp":
			e.DHCP4 = true
		case n.Type == "ipv4":
			mask := net.ParseIP(n.Netmask).To4()
			bits, size := net.IPMask(mask).Size()
			if mask == nil || size == 0 || !n.Address.Is4() {
				return networkConfig{}, fmt.Errorf("network of link %q: address %s with netmask %q", n.Link, n.Address, n.Netmask)
			}
			e.Addresses = append(e.Addresses, netip.PrefixFrom(n.Address, bits).String())
		}
		conf.Ethernets[n.Link] = e
	}
	return conf, nil
}
