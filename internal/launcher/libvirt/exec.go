package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// PingAgent asks the agent in the guest of the domain of this name whether it
// answers. It takes up to ten seconds if the agent does not.
func (c *Connection) PingAgent(ctx context.Context, name string) error {
	_, err := c.askAgent(ctx, name, `{"execute":"guest-ping"}`)
	return err
}

// Exit is how a process in a guest ended.
type Exit struct {
	// Status is its exit status.
	Status int
	// Signal is the number of the signal that ended it. 0: none did.
	Signal int
}

// Exec runs a program in the guest of the domain of this name by its agent, and
// returns how it ended. What the program writes is dropped in the guest. If ctx
// ends before, the program goes on: an agent cannot end it.
func (c *Connection) Exec(ctx context.Context, name, program string, args ...string) (Exit, error) {
	command, err := execCommand(program, args)
	if err != nil {
		return Exit{}, failure(askAgent, name, err)
	}
	answer, err := c.askAgent(ctx, name, command)
	if err != nil {
		return Exit{}, err
	}
	pid, err := execPID(answer)
	if err != nil {
		return Exit{}, failure(askAgent, name, err)
	}
	const soonest, latest = 20 * time.Millisecond, 500 * time.Millisecond
	for wait := soonest; ; wait = min(2*wait, latest) {
		answer, err := c.askAgent(ctx, name, fmt.Sprintf(`{"execute":"guest-exec-status","arguments":{"pid":%d}}`, pid))
		if err != nil {
			return Exit{}, err
		}
		if exit, err := execStatus(answer); exit != nil || err != nil {
			return exit.orZero(), failure(askAgent, name, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return Exit{}, failure(askAgent, name, fmt.Errorf("%s has not ended: %w", program, context.Cause(ctx)))
		}
	}
}

func (e *Exit) orZero() Exit {
	if e == nil {
		return Exit{}
	}
	return *e
}

// execCommand is the agent's command that runs a program.
func execCommand(program string, args []string) (string, error) {
	type arguments struct {
		Path string   `json:"path"`
		Args []string `json:"arg,omitempty"`
	}
	b, err := json.Marshal(struct {
		Execute   string    `json:"execute"`
		Arguments arguments `json:"arguments"`
	}{"guest-exec", arguments{program, args}})
	return string(b), err
}

// execPID reads the answer to guest-exec. The guest writes what it likes: no error
// repeats it.
func execPID(answer agentAnswer) (int64, error) {
	var started struct {
		Return struct {
			PID int64 `json:"pid"`
		} `json:"return"`
	}
	if err := answer.decode(&started); err != nil || started.Return.PID == 0 {
		return 0, errors.Join(errors.New("its answer is not what guest-exec answers"), err)
	}
	return started.Return.PID, nil
}

// execStatus reads the answer to guest-exec-status. Nil without an error: the program
// has not ended.
func execStatus(answer agentAnswer) (*Exit, error) {
	var status struct {
		Return *struct {
			Exited *bool `json:"exited"`
			Status int   `json:"exitcode"`
			Signal int   `json:"signal"`
		} `json:"return"`
	}
	switch err := answer.decode(&status); {
	case err != nil || status.Return == nil || status.Return.Exited == nil:
		return nil, errors.Join(errors.New("its answer is not what guest-exec-status answers"), err)
	case !*status.Return.Exited:
		return nil, nil
	}
	return &Exit{Status: status.Return.Status, Signal: status.Return.Signal}, nil
}
