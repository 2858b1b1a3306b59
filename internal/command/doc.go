// Package command gives all programs of the project the same command line: --help
// and -h print the help to standard output and succeed; a fault of the command
// line is one line on standard error, which names the way to the help, and exit
// status 2.
//
// [Program.Parse] reads flags, [Program.Status] ends a program. It touches the
// standard streams and nothing else.
package command
