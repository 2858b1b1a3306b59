package main

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// networkConfig is what this guest understands of network-config version 2.
// Without one every link uses DHCP.
type networkConfig struct {
	Version   int                 `json:"version"`
	Ethernets map[string]ethernet `json:"ethernets"`
}

// ethernet is one link of a network-config.
type ethernet struct {
	Match struct {
		MACAddress string `json:"macaddress"`
		Name       string `json:"name"`
	} `json:"match"`
	DHCP4       bool     `json:"dhcp4"`
	MTU         int      `json:"mtu"`
	Addresses   []string `json:"addresses"`
	Gateway4    string   `json:"gateway4"`
	Gateway6    string   `json:"gateway6"`
	Nameservers struct {
		Search    []string `json:"search"`
		Addresses []string `json:"addresses"`
	} `json:"nameservers"`
	Routes []struct {
		To  string `json:"to"`
		Via string `json:"via"`
	} `json:"routes"`
}

// parseNetworkConfig reads network-config, with or without the outer key
// "network" that netplan has. Empty is fine.
func parseNetworkConfig(b []byte) (networkConfig, error) {
	var outer struct {
		Network *networkConfig `json:"network"`
		networkConfig
	}
	if err := yaml.Unmarshal(b, &outer); err != nil {
		return networkConfig{}, err
	}
	conf := outer.networkConfig
	if outer.Network != nil {
		conf = *outer.Network
	}
	if len(b) > 0 && conf.Version != 2 {
		return networkConfig{}, fmt.Errorf("version %d is not supported, only 2", conf.Version)
	}
	return conf, nil
}

// of returns the configuration of a link: the one that matches its hardware
// address or name, or the one of its name.
func (n networkConfig) of(l link) (ethernet, bool) {
	for _, e := range n.Ethernets {
		if mac := e.Match.MACAddress; mac != "" && strings.EqualFold(mac, l.mac) || e.Match.Name != "" && e.Match.Name == l.name {
			return e, true
		}
	}
	e, ok := n.Ethernets[l.name]
	if e.Match.MACAddress != "" || e.Match.Name != "" {
		return ethernet{}, false
	}
	return e, ok
}
