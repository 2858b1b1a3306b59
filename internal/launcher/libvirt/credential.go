package libvirt

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
)

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
	return requestAgent(ctx, c, op, name, func(d golibvirt.Domain) error {
		_, err := c.rpc.QEMUDomainAgentCommand(d, string(text), agentTimeout, 0)
		return err
	})
}
