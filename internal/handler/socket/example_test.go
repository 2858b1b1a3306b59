package socket_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/podvisor/podvisor/internal/handler/socket"
)

func ExamplePods_Dial() {
	dir, _ := os.MkdirTemp("", "pods")
	defer os.RemoveAll(dir)
	pods, err := socket.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	_, err = pods.Dial(context.Background(), "0e3f8a52-9c1b-4b5e-8f6d-2a7c4d9e1f00")
	fmt.Println("not there yet:", errors.Is(err, os.ErrNotExist))
	_, err = pods.Dial(context.Background(), "../../etc")
	fmt.Println("refused:", errors.Is(err, socket.ErrUnsafe))
	// Output:
	// not there yet: true
	// refused: true
}
