// Command podvisor-tests prints what `go test -json` writes as a person reads it, and
// which tests took longest.
package main

import (
	"flag"
	"os"

	"github.com/podvisor/podvisor/e2e/testlog"
	"github.com/podvisor/podvisor/internal/command"
)

var program = command.Program{
	Name: "podvisor-tests",
	Usage: `usage: podvisor-tests print FILE     print what failed in the output of go test -json and a line for each package, add the times to FILE
       podvisor-tests slowest FILE   print the ten tests that took longest`,
}

func main() {
	os.Exit(program.Status(run(os.Args[1:])))
}

func run(args []string) error {
	var flags flag.FlagSet
	if err := program.Parse(&flags, args); err != nil {
		return err
	}
	if args = flags.Args(); len(args) != 2 {
		return command.Fault("a command and a file are needed")
	}
	switch args[0] {
	case "print":
		times, err := os.OpenFile(args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		if err := testlog.Print(os.Stdin, os.Stdout, times); err != nil {
			return err
		}
		return times.Close()
	case "slowest":
		times, err := os.Open(args[1])
		if err != nil {
			return err
		}
		defer times.Close()
		return testlog.Slowest(times, os.Stdout, 10)
	default:
		return command.Fault("unknown command %q", args[0])
	}
}
