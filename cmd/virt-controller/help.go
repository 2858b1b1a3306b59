package main

import "github.com/podvisor/podvisor/internal/command"

var program = command.Program{
	Name: "virt-controller",
	Usage: `usage: virt-controller [FLAG...]

Makes a pod for each VMI, follows it until it runs, and answers the webhooks. A
flag that is not given has the value of the environment variable in brackets.
`,
}
