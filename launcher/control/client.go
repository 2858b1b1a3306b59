package control

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// The paths of the protocol, besides those of [protocol.Path]. A change that an older peer
// would misread gets another version.
const (
	statePath   = "/v1/state"
	watchPath   = "/v1/watch"
	desiredPath = "/v1/desired"
	targetPath  = "/v1/target"
	statsPath   = "/v1/stats"
)

// A state is read within these limits: the launcher belongs to a tenant and may send
// anything.
const (
	// maxState is the length of the longest state, in bytes.
	maxState = 128 << 10
	// maxStats is the length of the longest stats, in bytes.
	maxStats = 512 << 10
)

// The states that a client reads: so many bytes at once, and then so many per second.
// A line counts as leastLine bytes at least. The whole life of a VMI takes fewer than
// the first; a launcher that never stops waits, instead of using a processor of the
// node.
const (
	statesAtOnce    = 512 << 10
	statesPerSecond = 64 << 10
	leastLine       = 1 << 10
)

// answerTimeout is how long a launcher may take for an answer. A call is answered
// when it is done, so it may take as long as its context lasts.
const answerTimeout = 10 * time.Second

// Client is the handler's side of one launcher's socket. Its methods may be called
// from any goroutine. It keeps no connection open between requests, so it needs no
// closing.
type Client struct {
	dial func(context.Context) (net.Conn, error)
	peer *transport.Client
	// mover makes the calls and opens the streams of migrations.
	mover *transport.Client
	// pace limits the states of all watches: another connection has no more.
	pace *rate.Limiter
	// closing has an element while a namespace is asked for, and while what came instead of
	// one is being closed.
	closing chan struct{}
}

// NewClient returns a client of the launcher that dial connects to. Namespace
// needs dial to return a [*net.UnixConn].
//
// A tenant controls the launcher: dial must not follow a path that the pod can
// change.
func NewClient(dial func(context.Context) (net.Conn, error)) *Client {
	config := transport.Config{
		Dial: dial, Host: "launcher", Timeout: answerTimeout, MaxAnswer: protocol.MaxAnswer,
		Refused: func(status int, f vmi.Finding) error { return &Error{status, f} },
	}
	moving := config
	moving.Timeout, moving.MaxAnswer = 0, protocol.MaxMigration
	return &Client{
		dial: dial, peer: transport.NewClient(config), mover: transport.NewClient(moving),
		pace: rate.NewLimiter(statesPerSecond, statesAtOnce), closing: make(chan struct{}, 1),
	}
}

// of is what makes the call of the path, or opens its stream.
func (c *Client) of(p protocol.Path) *transport.Client {
	if p.IsMigration() {
		return c.mover
	}
	return c.peer
}

// State reads the launcher's present state.
func (c *Client) State(ctx context.Context) (protocol.State, error) {
	resp, err := c.peer.Do(ctx, http.MethodGet, statePath, nil)
	if err != nil {
		return protocol.State{}, asked(err)
	}
	defer resp.Body.Close()
	var s protocol.State
	if err := transport.Read(resp.Body, maxState, &s); err != nil {
		return protocol.State{}, unreadable(err)
	}
	return s, nil
}

// unreadable is the error of a state that cannot be read.
func unreadable(err error) error { return fmt.Errorf("read the launcher's state: %w", err) }

// Watch reads the launcher's state as it changes, the present one first. The
// sequence ends after the Ended state; it ends with an error, together with a zero
// State, if the connection breaks before. A launcher that sends too much is read
// slowly.
func (c *Client) Watch(ctx context.Context) iter.Seq2[protocol.State, error] {
	return func(yield func(protocol.State, error) bool) {
		resp, err := c.peer.Do(ctx, http.MethodGet, watchPath, nil)
		if err != nil {
			yield(protocol.State{}, asked(err))
			return
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxState)
		for c.pace.WaitN(ctx, leastLine) == nil && lines.Scan() {
			var s protocol.State
			if err := transport.Decode(lines.Bytes(), maxState, &s); err != nil {
				yield(protocol.State{}, unreadable(err))
				return
			}
			if !yield(s, nil) || s.Phase == protocol.Ended {
				return
			}
			if more := len(lines.Bytes()) - leastLine; more > 0 && c.pace.WaitN(ctx, more) != nil {
				break // ctx ends before
			}
		}
		err = cmp.Or(lines.Err(), ctx.Err(), io.ErrUnexpectedEOF)
		yield(protocol.State{}, fmt.Errorf("watch the launcher's state: %w", err))
	}
}

// Put makes d the launcher's Desired. A refusal is an [*Error]; its reason is
// [protocol.ReasonUnknown] for a launcher of the release before that shall be a target: it
// would start the guest.
func (c *Client) Put(ctx context.Context, d protocol.Desired) error {
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode the desired state: %w", err)
	}
	path := desiredPath
	if d.Role == vmi.RoleTarget {
		path = targetPath
	}
	resp, err := c.peer.Do(ctx, http.MethodPut, path, body)
	if err != nil {
		return unknown(asked(err), "role "+string(d.Role))
	}
	return resp.Body.Close()
}

// Call makes a call and returns when it is done. Options are sent as JSON, and the
// answer is decoded into what answer points to; nil: there are none. An answer of more
// than [protocol.MaxAnswer] bytes, or of [protocol.MaxMigration] to a call of migrations, is an
// error. A refusal is an [*Error]; its reason is
// [protocol.ReasonUnknown] for a call that the launcher does not know. How long a call
// takes is bounded by ctx alone.
//
// The answer is a tenant's. A launcher of the release before ignores options, and
// answers nothing: then the answer stays as it is.
func (c *Client) Call(ctx context.Context, call protocol.Call, options, answer any) error {
	p := protocol.Path{Call: call}
	return unknown(asked(c.of(p).Call(ctx, p, options, answer)), "call "+string(call))
}

// Stats asks the launcher what is counted of its domain now. It is an [*Error] while there
// is no domain, and with [protocol.ReasonUnknown] from a launcher that counts nothing.
//
// The answer is a tenant's: use [protocol.Stats.Sanitized].
func (c *Client) Stats(ctx context.Context) (protocol.Stats, error) {
	resp, err := c.peer.Do(ctx, http.MethodGet, statsPath, nil)
	if err != nil {
		return protocol.Stats{}, unknown(asked(err), "statistics")
	}
	defer resp.Body.Close()
	var s protocol.Stats
	if err := transport.Read(resp.Body, maxStats, &s); err != nil {
		return protocol.Stats{}, fmt.Errorf("read the launcher's statistics: %w", err)
	}
	return s, nil
}
