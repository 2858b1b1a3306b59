package debian_test

import (
	"context"
	"fmt"
	"os"

	"github.com/podvisor/podvisor/e2e/debian"
)

func ExampleEnsure() {
	if err := debian.Ensure(context.Background(), os.Stdout, "nftables", "libseccomp-dev"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
