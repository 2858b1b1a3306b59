package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/launcher/supervisor"
)

func ExampleSupervisor_Run() {
	s, err := supervisor.New(supervisor.Config{
		Namespace: os.Getenv("NAMESPACE"), Name: os.Getenv("NAME"), UID: "1",
		AllowEmulation: true,
		Console:        os.Stdout,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	end, err := s.Run(ctx)
	if err != nil || !end.Reason.Succeeded() {
		os.Exit(1)
	}
	// Output: a launcher needs the namespace, name and UID of its VMI
}
