package terminal_test

import (
	"fmt"
	"os"

	"github.com/podvisor/podvisor/launcher/terminal"
)

// A program whose input may be a file writes to its output then.
func ExampleOpen() {
	in, err := os.Open(os.DevNull)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()
	shared, err := terminal.Open(in)
	if err != nil {
		fmt.Println(err)
		return
	}
	if shared == nil {
		fmt.Println("the input is no terminal")
		return
	}
	defer shared.Close()
	fmt.Fprint(shared.Guest(), "login: ")
	// Output: the input is no terminal
}
