package command_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/internal/version"
)

func TestACommandLine(t *testing.T) {
	tests := []struct {
		name     string
		args     []string
		ends     error
		status   int
		out, err string
	}{
		{name: "flags are read", args: []string{"-name", "x"}},
		{name: "--help is printed to standard output", args: []string{"--help"}, out: "usage: program [FLAG...]\n  -name string\n    \ta name\n"},
		{name: "-h is the same", args: []string{"-h"}, out: "usage: program [FLAG...]\n  -name string\n    \ta name\n"},
		{name: "--version alone is the version", args: []string{"--version"}, out: "program " + version.Of().String() + "\n"},
		{name: "a wrong flag is one line", args: []string{"--nope"}, status: 2, err: "program: flag provided but not defined: -nope: see program --help\n"},
		{name: "a flag without its value is one line", args: []string{"--name"}, status: 2, err: "program: flag needs an argument: -name: see program --help\n"},
		{name: "an argument is refused where none is expected", args: []string{"x"}, status: 2, err: "program: argument \"x\" is not expected: see program --help\n"},
		{name: "another error is no fault of the command line", ends: errors.New("define domain"), status: 1, err: "program: define domain\n"},
		{name: "a wrapped fault is one", ends: fmt.Errorf("up: %w", command.Fault("no %s", "name")), status: 2, err: "program: up: no name: see program --help\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			p := command.Program{Name: "program", Usage: "usage: program [FLAG...]", Out: &out, Err: &errs}
			f := &flag.FlagSet{}
			f.String("name", "", "a name")
			err := p.ParseFlags(f, tt.args)
			if err == nil {
				err = tt.ends
			}
			require.Equal(t, tt.status, p.Status(err))
			require.Equal(t, tt.out, out.String())
			require.Equal(t, tt.err, errs.String())
		})
	}
}
