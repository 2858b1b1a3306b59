package link_test

import (
	"context"
	"fmt"
	"os"

	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// bind binds the interfaces of a VMI to the networks of its pod, whose namespace a
// launcher has sent.
func bind(ns, launcher *os.File, instance *vmi.VirtualMachineInstance, owner network.Owner) ([]network.Attachment, error) {
	if err := link.Check(ns, launcher); err != nil {
		return nil, err
	}
	state, err := link.Observe(context.Background(), ns)
	if err != nil {
		return nil, err
	}
	cfg, err := network.Plan(network.Input{Instance: instance, State: state, Owner: owner})
	if err != nil {
		return nil, err
	}
	if err := nft.Apply(ns, cfg); err != nil {
		return nil, err
	}
	return cfg.Attachments, link.Apply(context.Background(), ns, cfg)
}

func ExampleApply() {
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer own.Close()
	_, err = bind(own, nil, &vmi.VirtualMachineInstance{}, network.Owner{UID: 107, GID: 107})
	fmt.Println(err)
	// Output: not the network namespace of a pod: a file of the kind other
}
