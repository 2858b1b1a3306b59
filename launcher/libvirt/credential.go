package libvirt

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// ErrAgentRefused is the class of errors of an agent that answered that it did not do
// what it was asked to: it does not know the command, or the command failed.
var ErrAgentRefused = errors.New("the agent refused")

// SetAuthorizedKeys makes the keys all SSH public keys of the user of the guest of the
// domain of this name, by its agent: those that were there before are lost. It takes up
// to ten seconds if the agent does not answer. No error contains what the agent
// answered, which may be the keys.
func (c *Connection) SetAuthorizedKeys(ctx context.Context, name, user string, keys []string) error {
	// Not virDomainAuthorizedSSHKeysSet: it waits for the guest without a limit.
	return c.sendSecret(ctx, name, "write the SSH public keys of a user in", "guest-ssh-add-authorized-keys", map[string]any{
		"username": user, "keys": append([]string{}, keys...), "reset": true,
	})
}

// SetPassword sets the password of the user of the guest of the domain of this name, by
// its agent. It takes up to ten seconds if the agent does not answer. No error contains
// what the agent answered, which may be the password.
func (c *Connection) SetPassword(ctx context.Context, name, user, password string) error {
	return c.sendSecret(ctx, name, "set the password of a user in", "guest-set-user-password", map[string]any{
		"username": user, "password": base64.StdEncoding.EncodeToString([]byte(password)), "crypted": false,
	})
}

// sendSecret sends a command with secrets to the agent.
func (c *Connection) sendSecret(ctx context.Context, name, op, command string, arguments map[string]any) error {
	text, err := json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	if err != nil {
		return failure(op, name, fmt.Errorf("encode %s", command))
	}
	_, err = c.askAgent(ctx, name, string(text))
	return secretFailure(op, name, err)
}

// secretFailure is the error of a command with secrets, without any text of the guest.
func secretFailure(op, name string, err error) error {
	if err == nil {
		return nil
	}
	out := &Error{Op: op, Domain: name, Err: errors.New("no answer of its agent")}
	var e *Error
	switch {
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
