package share_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/podvisor/podvisor/internal/launcher/share"
)

func ExampleServe() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background())
	socket := filepath.Join(dir, "data.sock")
	served := make(chan error, 1)
	go func() { served <- share.Serve(ctx, share.Config{Socket: socket, Folder: dir, ReadOnly: true}) }()

	ended, err := share.Watch(ctx, context.Background(), socket)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("QEMU can connect")
	stop()
	<-ended
	fmt.Println("the server ended:", <-served)
	// Output:
	// QEMU can connect
	// the server ended: <nil>
}
