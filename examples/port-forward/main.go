// Command port-forward listens on ports of this host that lead to ports of a guest.
//
//	port-forward [-n NAMESPACE] [-address ADDRESS] vm/NAME|vmi/NAME [LOCAL:]REMOTE[/tcp|/udp]…
//
// LOCAL is REMOTE if it is left out, and any free port if it is 0. It takes the cluster from
// KUBECONFIG or ~/.kube/config, and needs the right to get portforward of virtualmachines or
// virtualmachineinstances of subresources.kubevirt.io.
//
//	port-forward vm/web 8080:80 5353:53/udp
//
// Whoever reaches the local ports uses the guest's with the rights of the caller: ADDRESS
// is 127.0.0.1 unless something else is asked for.
//
// A connection that the guest refuses is reported and closed; the ports stay open. A stream
// has no half-close: when one side has sent its last byte, the connection ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/examples/command"
	"github.com/podvisor/podvisor/vmi/client"
)

var program = command.Program{
	Name: "port-forward",
	Usage: "usage: port-forward [-n NAMESPACE] [-address ADDRESS] vm/NAME|vmi/NAME [LOCAL:]REMOTE[/tcp|/udp]...\n\n" +
		"makes ports of this host lead to ports of a guest, as in: port-forward vm/web 8080:80 5353:53/udp",
}

func main() { os.Exit(program.Exit(run(os.Args[1:]), os.Stderr)) }

func run(args []string) error {
	var flags flag.FlagSet
	namespace := flags.String("n", "", "the `NAMESPACE` of the guest; default: that of the current context")
	address := flags.String("address", "127.0.0.1", "the `ADDRESS` of this host to listen on")
	if err := program.Parse(&flags, args, os.Stdout); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return command.Fault("a guest and at least one port are needed")
	}
	var ports []port
	for _, a := range flags.Args()[1:] {
		p, err := parsePort(a)
		if err != nil {
			return err
		}
		ports = append(ports, p)
	}
	c, in, err := command.Cluster(*namespace)
	if err != nil {
		return err
	}
	dial, err := dialer(c, in, flags.Arg(0))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := exists(ctx, c, in, flags.Arg(0)); err != nil {
		return err
	}
	f := forwarder{guest: flags.Arg(0), dial: dial, address: *address, out: os.Stdout, notes: os.Stderr}
	return f.run(ctx, ports)
}

// dialer connects to the guest, as vm/NAME or vmi/NAME.
func dialer(c *client.Client, namespace, guest string) (client.Dial, error) {
	kind, name, _ := strings.Cut(guest, "/")
	switch {
	case name == "":
	case kind == "vm":
		return c.VirtualMachines(namespace).PortForward(name), nil
	case kind == "vmi":
		return c.VirtualMachineInstances(namespace).PortForward(name), nil
	}
	return nil, command.Fault(fmt.Sprintf("%q is neither vm/NAME nor vmi/NAME", guest))
}

// exists says whether the guest's object exists. A user without the right to read it gets
// the answer with the first connection.
func exists(ctx context.Context, c *client.Client, namespace, guest string) error {
	kind, name, _ := strings.Cut(guest, "/")
	var err error
	if kind == "vm" {
		_, err = c.VirtualMachines(namespace).Get(ctx, name, metav1.GetOptions{})
	} else {
		_, err = c.VirtualMachineInstances(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("find %s in namespace %s: %w", guest, namespace, err)
	}
	return nil
}

// port is a port of this host and the port of the guest that it leads to.
type port struct {
	local, remote uint16
	network       string
}

func (p port) String() string { return fmt.Sprintf("port %d/%s", p.remote, p.network) }
