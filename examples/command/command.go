// Package command has what the command lines of the examples share: flags and faults, the
// cluster of the user, and manifests in files.
package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// Fault is a fault of the command line.
type Fault string

func (f Fault) Error() string { return string(f) }

// Program is a program with its name and what its help begins with.
type Program struct{ Name, Usage string }

// Parse parses the arguments into the flags. It prints the help where that is asked for,
// and returns flag.ErrHelp then.
func (p Program) Parse(f *flag.FlagSet, args []string, out io.Writer) error {
	f.Init(p.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, p.Usage)
		f.SetOutput(out)
		f.PrintDefaults()
	case err != nil:
		return Fault(err.Error())
	}
	return err
}

// Exit is the exit status of the program that ended with the error, which it prints:
// 2 for a fault of the command line, and 1 for all others.
func (p Program) Exit(err error, faults io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, new(Fault)):
		fmt.Fprintf(faults, "%s: %v: see %[1]s --help\n", p.Name, err)
		return 2
	}
	fmt.Fprintf(faults, "%s: %v\n", p.Name, err)
	return 1
}
