package libvirt

import (
	"context"
	"fmt"
	"slices"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// Processors are what guests of an architecture, as libvirt names it, can have on
// this host. KVM need not be there.
func (c *Connection) Processors(ctx context.Context, arch string) (protocol.Processors, error) {
	type answers struct {
		host, emulated string
		names          []string
	}
	said, err := wait(ctx, c, func() (a answers, err error) {
		if a.host, err = c.rpc.ConnectGetCapabilities(); err != nil {
			return a, err
		}
		if a.names, _, err = c.rpc.ConnectGetCPUModelNames(arch, 1, 0); err != nil {
			return a, err
		}
		a.emulated, err = c.rpc.ConnectGetDomainCapabilities(nil, golibvirt.OptString{arch}, nil, golibvirt.OptString{"qemu"}, 0)
		return a, err
	})
	if err != nil {
		return protocol.Processors{}, fmt.Errorf("ask libvirt what processors guests can have: %w", err)
	}
	expand := func(p libvirtxml.CapsHostCPU) ([]string, error) { return c.expand(ctx, p) }
	var all protocol.Processors
	if all.Native, err = native(said.host, said.names, expand); err != nil {
		return protocol.Processors{}, err
	}
	all.Emulated, err = emulation(said.emulated, expand)
	return all, err
}

// expand returns all features of a processor, those of its model included.
func (c *Connection) expand(ctx context.Context, p libvirtxml.CapsHostCPU) ([]string, error) {
	in, err := p.Marshal()
	if err != nil {
		return nil, err
	}
	out, err := wait(ctx, c, func() (string, error) {
		return c.rpc.ConnectBaselineCPU([]string{in}, golibvirt.ConnectBaselineCPUExpandFeatures)
	})
	if err != nil {
		return nil, fmt.Errorf("ask libvirt for the features of %s: %w", p.Model, err)
	}
	var full libvirtxml.DomainCPU
	if err := full.Unmarshal(out); err != nil {
		return nil, fmt.Errorf("read the features of %s: %w", p.Model, err)
	}
	var features []string
	for _, f := range full.Features {
		if f.Policy == "require" {
			features = append(features, f.Name)
		}
	}
	return features, nil
}

// Features that KVM has of its own, whatever the processor has, those that it never
// has, and those that bind a guest to the processor.
var (
	ofKVM    = []string{"arat", "hypervisor", "tsc-deadline", "tsc_adjust", "x2apic"}
	notOfKVM = []string{"acpi", "bus-lock-detect", "dtes64", "ds", "ds_cpl", "est", "ht", "monitor", "osxsave", "pbe", "smx", "tm", "tm2", "xtpr", "invtsc", "mpx"}
)

// native is what guests can have with KVM on a host with these capabilities, and of
// the models with these names those of which the host has all.
func native(capabilities string, names []string, expand func(libvirtxml.CapsHostCPU) ([]string, error)) (protocol.Processor, error) {
	var c libvirtxml.Caps
	if err := c.Unmarshal(capabilities); err != nil {
		return protocol.Processor{}, fmt.Errorf("read the capabilities of the host: %w", err)
	}
	host := c.Host.CPU
	if host == nil || host.Model == "" {
		return protocol.Processor{}, nil // libvirt does not know the processor
	}
	has, err := expand(libvirtxml.CapsHostCPU{Arch: host.Arch, Model: host.Model, FeatureFlags: host.FeatureFlags})
	if err != nil {
		return protocol.Processor{}, err
	}
	p := protocol.Processor{Vendor: host.Vendor, HostModel: host.Model}
	p.Features = only(append(has, ofKVM...), func(f string) bool { return !slices.Contains(notOfKVM, f) })
	for _, f := range host.FeatureFlags {
		if slices.Contains(p.Features, f.Name) {
			p.HostModelFeatures = append(p.HostModelFeatures, f.Name)
		}
	}
	slices.Sort(p.HostModelFeatures)
	p.Models = only(names, func(name string) bool {
		needs, err := expand(libvirtxml.CapsHostCPU{Arch: host.Arch, Model: name})
		return err == nil && len(needs) > 0 && !slices.ContainsFunc(needs, func(f string) bool {
			return f != "mpx" && !slices.Contains(p.Features, f) // no guest with a named model has mpx
		})
	})
	return p, nil
}

// emulation is what guests can have without KVM, by the capabilities of a domain.
func emulation(capabilities string, expand func(libvirtxml.CapsHostCPU) ([]string, error)) (protocol.Processor, error) {
	var c libvirtxml.DomainCaps
	if err := c.Unmarshal(capabilities); err != nil {
		return protocol.Processor{}, fmt.Errorf("read what domains can have: %w", err)
	}
	var p protocol.Processor
	if c.CPU == nil {
		return p, nil
	}
	for _, m := range c.CPU.Modes {
		switch {
		case m.Name == "custom":
			for _, model := range m.Models {
				if model.Usable == "yes" {
					p.Models = append(p.Models, model.Name)
				}
			}
		case m.Name == "host-model" && len(m.Models) > 0:
			if err := most(&p, c.Arch, m, expand); err != nil {
				return p, err
			}
		}
	}
	slices.Sort(p.Models)
	return p, nil
}

// most adds what libvirt calls the host's model under emulation: all that QEMU can
// emulate.
func most(p *protocol.Processor, arch string, m libvirtxml.DomainCapsCPUMode, expand func(libvirtxml.CapsHostCPU) ([]string, error)) error {
	p.Vendor, p.HostModel = m.Vendor, m.Models[0].Name
	in := libvirtxml.CapsHostCPU{Arch: arch, Model: p.HostModel}
	var lacks []string
	for _, f := range m.Features {
		if f.Policy == "require" {
			p.HostModelFeatures = append(p.HostModelFeatures, f.Name)
			in.FeatureFlags = append(in.FeatureFlags, libvirtxml.CapsHostCPUFeatureFlag{Name: f.Name})
		} else {
			lacks = append(lacks, f.Name)
		}
	}
	slices.Sort(p.HostModelFeatures)
	has, err := expand(in)
	p.Features = only(has, func(f string) bool { return !slices.Contains(lacks, f) })
	return err
}

// only are the elements that are kept, sorted and each once.
func only(all []string, keep func(string) bool) []string {
	var out []string
	for _, s := range all {
		if keep(s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
