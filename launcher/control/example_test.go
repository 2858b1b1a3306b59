package control_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func Example() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, vmi.LauncherSocket)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// The launcher.
	l, _ := net.Listen("unix", socket)
	var server *control.Server
	server = control.NewServer(control.ServerConfig{Namespace: "default", Name: "hello", UID: "1", Put: func(protocol.Desired) error {
		server.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Cancelled}})
		return nil
	}})
	go func() { _ = server.Serve(ctx, l) }()

	// The handler.
	client := control.NewClient(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	})
	instance := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: "1"}}
	for state, err := range client.Watch(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(state.Phase)
		if state.Phase == protocol.Waiting {
			_ = client.Put(ctx, protocol.Desired{Instance: instance, Stop: &protocol.Stop{}})
		}
	}
	// Output:
	// Waiting
	// Ended
}
