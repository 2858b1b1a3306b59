package toolchain_test

import (
	"context"
	"fmt"
	"os"

	"github.com/podvisor/podvisor/e2e/toolchain"
)

func ExampleBuild() {
	tools, err := toolchain.Build(context.Background(), toolchain.Config{Out: os.Stdout})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(tools.Kubernetes + "/kubectl")
	fmt.Println(tools.Runtime + "/containerd")
}

func ExampleVirtctl() {
	path, err := toolchain.Virtctl(context.Background(), toolchain.Config{Out: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(path)
}
