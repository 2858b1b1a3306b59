package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// askAgent sends a command to the agent in the guest of the domain of this name, and
// returns its answer, which may be anything.
func (c *Connection) askAgent(ctx context.Context, name, command string) (string, error) {
	return c.askAgentFor(ctx, agentTimeout, name, command)
}

// askAgentFor is askAgent for a command whose answer may take so many seconds.
func (c *Connection) askAgentFor(ctx context.Context, seconds int32, name, command string) (string, error) {
	answer, err := of(ctx, c, askAgent, name, func(d golibvirt.Domain) (golibvirt.OptString, error) {
		return c.rpc.QEMUDomainAgentCommand(d, command, seconds, 0)
	})
	if err != nil {
		return "", err
	}
	if len(answer) == 0 {
		return "", failure(askAgent, name, errors.New("it gave no answer"))
	}
	return answer[0], nil
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
func agentVersion(answer string) (string, error) {
	if len(answer) > maxAnswer {
		return "", fmt.Errorf("its answer has %d bytes, and at most %d are read", len(answer), maxAnswer)
	}
	var info struct {
		Return struct {
			Version string `json:"version"`
		} `json:"return"`
	}
	if json.Unmarshal([]byte(answer), &info) != nil {
		return "", errors.New("its answer is not what guest-info answers")
	}
	if v := info.Return.Version; len(v) <= maxVersion && oneVersion.MatchString(v) {
		return v, nil
	}
	return "", errors.New("its version is none")
}
