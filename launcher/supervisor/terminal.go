package supervisor

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/launcher/terminal"
)

// Connect sets Console, Input, Logger and LogLevel: the guest's console and the log, as
// JSON, are on the terminal that in is, or on out and errs if it is none. A terminal
// becomes raw, and signals of its keys no longer end the process. Connect returns the
// signals that end the guest.
func (c *Config) Connect(in *os.File, out, errs io.Writer) ([]os.Signal, error) {
	raw, err := terminal.Open(in)
	if err != nil {
		return nil, err
	}
	ends := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	c.Console = out
	if raw != nil {
		c.Input, c.Console, errs, ends = raw, raw.Guest(), raw.Log(), ends[:1]
		// A key that is typed before the terminal is raw, and the end of the terminal,
		// are no reason to end the guest.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTSTP)
	}
	c.LogLevel = &slog.LevelVar{}
	c.Logger = slog.New(slog.NewJSONHandler(errs, &slog.HandlerOptions{Level: c.LogLevel}))
	return ends, nil
}
