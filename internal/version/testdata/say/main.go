// Command say prints its version.
package main

import (
	"fmt"

	"github.com/podvisor/podvisor/internal/version"
)

func main() { fmt.Println(version.Of()) }
