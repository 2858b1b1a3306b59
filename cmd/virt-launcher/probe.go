package main

import (
	"context"
	"flag"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/launcher/supervisor"
)

// probe answers the kubelet, which runs it in the container of the launcher.
func probe(args []string) error {
	if len(args) == 0 {
		return command.Fault("probe needs ping, exec or arrived")
	}
	limitMemory()
	c := supervisor.ProbeConfig{Question: supervisor.Question(args[0])}
	var f flag.FlagSet
	f.StringVar(&c.Namespace, "namespace", "", "the VMI's namespace")
	f.StringVar(&c.Name, "name", "", "the VMI's name")
	f.DurationVar(&c.Timeout, "timeout", 0, "how long the answer may take; 0: as long as it takes")
	if err := program.Parse(&f, args[1:]); err != nil {
		return err
	}
	c.Command = f.Args()
	return supervisor.Probe(context.Background(), c)
}
