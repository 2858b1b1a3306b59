package main

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/launcher/console"
	"github.com/podvisor/podvisor/launcher/supervisor"
)

// connect connects the guest's console and the log with the terminal that the
// container has, or with the output and the error output if it has none. It returns
// the signals that end the guest.
func connect(c *supervisor.Config) ([]os.Signal, error) {
	terminal, err := console.OpenTerminal(os.Stdin)
	if err != nil {
		return nil, err
	}
	log, ends := io.Writer(os.Stderr), []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	c.Console = os.Stdout
	if terminal != nil {
		c.Input, c.Console, log, ends = terminal, terminal.Guest(), terminal.Log(), ends[:1]
		// A key that is typed before the terminal is raw, and the end of the terminal,
		// are no reason to end the guest.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTSTP)
	}
	c.LogLevel = &slog.LevelVar{}
	c.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: c.LogLevel}))
	return ends, nil
}
