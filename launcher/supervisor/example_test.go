package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/launcher/supervisor"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// A launcher in the process of an embedder, outside of a pod. The VMI comes from the
// embedder and not from a handler. This one is stopped before its guest was started:
// without Stop, Run would return when the guest has powered off.
func ExampleSupervisor_Run() {
	root, err := os.MkdirTemp("", "vm")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	for _, dir := range []string{vmi.SocketsDir, vmi.PrivateDir} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			fmt.Println(err)
			return
		}
	}
	instance := vmitest.New(vmitest.WithName("hello"))
	s, err := supervisor.New(supervisor.Config{
		Namespace: instance.Namespace, Name: instance.Name, UID: instance.UID,
		Root: root, AllowEmulation: true, Console: os.Stdout,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := s.Put(protocol.Desired{Generation: 1, Instance: instance, Stop: &protocol.Stop{GracePeriodSeconds: 30}}); err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	end, err := s.Run(ctx)
	fmt.Println(end.Reason, err)
	// Output: Cancelled <nil>
}
