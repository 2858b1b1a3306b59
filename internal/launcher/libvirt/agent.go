package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// agentChannel is the name of the channel that an agent opens in the guest.
const agentChannel = "org.qemu.guest_agent.0"

// AgentConnected says whether the guest of the domain of this name has opened the
// agent's channel.
func (c *Connection) AgentConnected(ctx context.Context, name string) (bool, error) {
	d, err := c.Describe(ctx, name)
	return err == nil && agentConnected(d), err
}

// agentConnected says whether the agent's channel of the domain is open.
func agentConnected(d *libvirtxml.Domain) bool {
	if d.Devices == nil {
		return false
	}
	for _, ch := range d.Devices.Channels {
		if t := ch.Target; t != nil && t.VirtIO != nil && t.VirtIO.Name == agentChannel {
			return t.VirtIO.State == "connected"
		}
	}
	return false
}

// agentTimeout is how long libvirt waits for an agent, in seconds: once for the
// answer to a sync and once for that to the command.
const agentTimeout = 5

// AgentVersion asks the agent in the guest of the domain of this name for its
// version. It takes up to ten seconds if the agent does not answer.
func (c *Connection) AgentVersion(ctx context.Context, name string) (string, error) {
	answer, err := c.askAgent(ctx, name, `{"execute":"guest-info"}`)
	if err != nil {
		return "", err
	}
	version, err := agentVersion(answer)
	return version, failure(askAgent, name, err)
}

// askAgent is what is done in every error about an agent.
const askAgent = "ask the agent in"

// agentAnswer is what an agent answered: a guest chose each byte of it. It is only decoded,
// and whatever prints, logs or encodes it gets its length.
type agentAnswer struct{ text string }

// String stands for the answer wherever it is printed.
func (a agentAnswer) String() string { return fmt.Sprintf("an answer of %d bytes", len(a.text)) }

// Format implements [fmt.Formatter], for all verbs.
func (a agentAnswer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, a.String()) }

// MarshalText is for encoders, and for log/slog.
func (a agentAnswer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// decode decodes an answer that is not too long. No error repeats it.
func (a agentAnswer) decode(v any) error {
	if len(a.text) > maxAnswer {
		return fmt.Errorf("it has %d bytes, and at most %d are read", len(a.text), maxAnswer)
	}
	if json.Unmarshal([]byte(a.text), v) != nil {
		return errors.New("it is no JSON of that form")
	}
	return nil
}

// toAgent is [of] for a call that libvirt passes to the agent in the guest. The guest
// chooses the text of an error of its agent: no error has any of it. Every such call is
// made by it.
func toAgent[T any](ctx context.Context, c *Connection, op, name string, call func(golibvirt.Domain) (T, error)) (T, error) {
	value, err := of(ctx, c, op, name, call)
	return value, agentFailure(op, name, context.Cause(ctx), err)
}

// requestAgent is toAgent for a call without a result.
func requestAgent(ctx context.Context, c *Connection, op, name string, do func(golibvirt.Domain) error) error {
	_, err := toAgent(ctx, c, op, name, func(d golibvirt.Domain) (struct{}, error) { return struct{}{}, do(d) })
	return err
}

// ErrAgentRefused is the class of errors of an agent that answered that it did not do
// what it was asked to: it does not know the command, or the command failed.
var ErrAgentRefused = errors.New("the agent refused")

// agentFailure is the error of a call that was passed to an agent: of err there is what
// class it is of, and no text. ended is why the context of the call has ended, if it has.
func agentFailure(op, name string, ended, err error) error {
	if err == nil {
		return nil
	}
	out := &Error{Op: op, Domain: name, Err: errors.New("no answer of its agent")}
	var e *Error
	switch {
	case ended != nil:
		out.Err = fmt.Errorf("no answer of its agent: %w", ended)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		out.Err = fmt.Errorf("no answer of its agent: %w", context.DeadlineExceeded)
	case errors.As(err, &e):
		out.Code = e.Code
		switch {
		case refuses(err):
			out.Err = ErrAgentRefused
		case e.Code == golibvirt.ErrAgentUnresponsive, e.Code == golibvirt.ErrAgentUnsynced, e.Code == golibvirt.ErrAgentCommandTimeout:
		case e.Code == golibvirt.ErrNoDomain:
			out.Err = ErrNotFound
		default:
			out.Err = fmt.Errorf("libvirt error %d", e.Code)
		}
	}
	return out
}

// refuses says that an error is an answer of the agent: it does not know the command, or
// the command failed. libvirt 9.0 gives an error of the agent no code of its own.
func refuses(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == golibvirt.ErrAgentCommandFailed || e.Code == golibvirt.ErrInternalError)
}

// askAgent sends a command to the agent in the guest of the domain of this name, and
// returns its answer, which may be anything.
func (c *Connection) askAgent(ctx context.Context, name, command string) (agentAnswer, error) {
	return c.askAgentFor(ctx, agentTimeout, name, command)
}

// askAgentFor is askAgent for a command whose answer may take so many seconds.
func (c *Connection) askAgentFor(ctx context.Context, seconds int32, name, command string) (agentAnswer, error) {
	answer, err := toAgent(ctx, c, askAgent, name, func(d golibvirt.Domain) (golibvirt.OptString, error) {
		return c.rpc.QEMUDomainAgentCommand(d, command, seconds, 0)
	})
	if err != nil {
		return agentAnswer{}, err
	}
	if len(answer) == 0 {
		return agentAnswer{}, failure(askAgent, name, errors.New("it gave no answer"))
	}
	return agentAnswer{answer[0]}, nil
}

const (
	// maxAnswer is the longest answer of an agent that is read. An agent's is a few
	// KiB, most of it the names of its commands.
	maxAnswer = 64 << 10
	// maxVersion is the longest version.
	maxVersion = 63
)

// oneVersion matches what can be a version.
var oneVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~_-]*$`)

// agentVersion reads the version in the answer to guest-info. The guest writes
// what it likes: no error repeats it.
func agentVersion(answer agentAnswer) (string, error) {
	var info struct {
		Return struct {
			Version string `json:"version"`
		} `json:"return"`
	}
	if err := answer.decode(&info); err != nil {
		return "", fmt.Errorf("its answer is not what guest-info answers: %w", err)
	}
	if v := info.Return.Version; len(v) <= maxVersion && oneVersion.MatchString(v) {
		return v, nil
	}
	return "", errors.New("its version is none")
}
