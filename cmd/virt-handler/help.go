package main

import "github.com/podvisor/podvisor/internal/command"

var program = command.Program{
	Name: "virt-handler",
	Usage: `usage: virt-handler [FLAG...]

Binds the VMIs of one node to the networks of their pods, offers the node's
devices and reports the VMIs' status.
`,
}
