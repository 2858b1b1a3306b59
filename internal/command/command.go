package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/podvisor/podvisor/internal/version"
)

// ErrUsage is the class of the faults of a command line.
var ErrUsage = errors.New("wrong command line")

// fault is a fault of the command line of a program.
type fault struct{ text string }

func (f fault) Error() string        { return f.text }
func (f fault) Is(target error) bool { return target == ErrUsage }

// Fault is an error of the class ErrUsage with the text.
func Fault(format string, args ...any) error { return fault{fmt.Sprintf(format, args...)} }

// Program is what every program does with its command line. Nothing is global:
// a test gives writers of its own.
type Program struct {
	// Name is the program's. Required.
	Name string
	// Usage is what --help prints before the flags: how the program is called and
	// what it does. Required.
	Usage string
	// Out gets the help, and Err the faults. Nil: standard output and standard
	// error.
	Out, Err io.Writer
}

// Parse parses the arguments into the set, whose arguments that are no flags stay
// in it. It prints the help or, for --version alone, the version where it is asked for,
// and returns flag.ErrHelp then. Another error is of the class ErrUsage.
func (p Program) Parse(f *flag.FlagSet, args []string) error {
	f.Init(p.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	if len(args) == 1 && args[0] == "--version" {
		_, err := fmt.Fprintln(p.out(), p.Name, version.Of())
		return errors.Join(flag.ErrHelp, err)
	}
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return errors.Join(err, p.Help(f))
	case err != nil:
		return Fault("%v", err)
	}
	return nil
}

// ParseFlags is Parse for a program that takes flags and nothing else.
func (p Program) ParseFlags(f *flag.FlagSet, args []string) error {
	if err := p.Parse(f, args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return Fault("argument %q is not expected", f.Arg(0))
	}
	return nil
}

// Help prints the usage and the flags. A nil set has none.
func (p Program) Help(f *flag.FlagSet) error {
	out := p.out()
	if _, err := fmt.Fprintln(out, p.Usage); err != nil {
		return err
	}
	if f != nil {
		f.SetOutput(out)
		f.PrintDefaults()
	}
	return nil
}

func (p Program) out() io.Writer {
	if p.Out == nil {
		return os.Stdout
	}
	return p.Out
}

// Status is the exit status of a program that ended with the error, which it
// prints: 0 without an error and after the help, 2 for a fault of the command
// line, and 1 for all others.
func (p Program) Status(err error) int {
	out := p.Err
	if out == nil {
		out = os.Stderr
	}
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		_, _ = fmt.Fprintf(out, "%s: %v: see %[1]s --help\n", p.Name, err)
		return 2
	default:
		_, _ = fmt.Fprintf(out, "%s: %v\n", p.Name, err)
		return 1
	}
}
