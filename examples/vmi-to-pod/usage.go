package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

const (
	name  = "vmi-to-pod"
	usage = "usage: vmi-to-pod [FLAG...] FILE...\n\nprints the launcher pods of VMIs"
)

// usageError is a fault of the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// parse parses the arguments into the flags. It prints the help where that is asked for,
// and returns flag.ErrHelp then.
func parse(f *flag.FlagSet, args []string, out io.Writer) error {
	f.Init(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
	case err != nil:
		return usageError(err.Error())
	}
	return err
}

// exitStatus is the exit status of the program that ended with the error, which it prints:
// 2 for a fault of the command line, and 1 for all others.
func exitStatus(err error, faults io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, new(usageError)):
		fmt.Fprintf(faults, "%s: %v: see %[1]s --help\n", name, err)
		return 2
	}
	fmt.Fprintf(faults, "%s: %v\n", name, err)
	return 1
}
