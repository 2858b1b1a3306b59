package process_test

import (
	"context"
	"fmt"

	"github.com/podvisor/podvisor/internal/launcher/process"
)

func ExampleDaemon() {
	reaper, err := process.NewReaper()
	if err != nil {
		fmt.Println(err)
		return
	}
	d := process.NewDaemon(process.Config{Dir: "/run/kubevirt-private/libvirt", Reaper: reaper})
	fmt.Println(d.Socket())

	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a launcher runs both until its domain has ended
	reaper.Run(ctx)
	d.Run(ctx)
	// Output: /run/kubevirt-private/libvirt/run/libvirt/libvirt-sock
}
