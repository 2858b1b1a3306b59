package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/podvisor/podvisor/launcher/control"
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

// A call of another program: its device has a socket in the pod, to which the call writes what
// its users ask for. A handler passes the call on from scheduler/guest, as it does with those
// of the protocol. Here the control socket is dialed in its place.
func ExampleConfig_calls() {
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
	type frame struct{ Number int }
	instance := vmitest.New(vmitest.WithName("hello"))
	s, err := supervisor.New(supervisor.Config{
		Namespace: instance.Namespace, Name: instance.Name, UID: instance.UID, Root: root, AllowEmulation: true,
		Calls: map[protocol.Call]func(context.Context, []byte) (any, error){
			"frame.example.com": func(_ context.Context, options []byte) (any, error) {
				var asked frame
				if err := json.Unmarshal(options, &asked); err != nil {
					return nil, fmt.Errorf("%w: %w", vmi.ErrInvalid, err)
				}
				return frame{asked.Number + 1}, nil
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { _, err := s.Run(context.Background()); ended <- err }()
	handler := control.NewClient(func(ctx context.Context) (net.Conn, error) {
		socket := filepath.Join(root, vmi.SocketsDir, vmi.LauncherSocket)
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		for err != nil && ctx.Err() == nil { // it does not listen yet
			time.Sleep(10 * time.Millisecond)
			conn, err = (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
		return conn, err
	})
	var next frame
	err = handler.Call(context.Background(), "frame.example.com", frame{41}, &next)
	fmt.Println(next.Number, err)

	if err := s.Put(protocol.Desired{Generation: 1, Instance: instance, Stop: &protocol.Stop{}}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-ended)
	// Output:
	// 42 <nil>
	// <nil>
}
