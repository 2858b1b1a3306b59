package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/podvisor/podvisor/vmi"
)

// Of what an agent says of users, file systems and commands, so many are read, and so many
// bytes of a text.
const (
	mostListed = 256
	mostText   = 256
)

// ask asks the agent a question without arguments and decodes the answer, which is the
// guest's. No error repeats it.
func ask[T any](ctx context.Context, c *Connection, name, command string) (out T, err error) {
	return askFor[T](ctx, c, agentTimeout, name, command)
}

// askFor is ask for a question whose answer may take so many seconds.
func askFor[T any](ctx context.Context, c *Connection, seconds int32, name, command string) (out T, err error) {
	answer, err := c.askAgentFor(ctx, seconds, name, `{"execute":"`+command+`"}`)
	if err != nil {
		return out, err
	}
	out, err = returned[T](answer)
	if err != nil {
		err = failure(askAgent, name, fmt.Errorf("its answer to %s: %w", command, err))
	}
	return out, err
}

// returned is what an agent's answer returns.
func returned[T any](answer agentAnswer) (T, error) {
	var out struct {
		Return *T `json:"return"`
	}
	err := answer.decode(&out)
	if err == nil && out.Return == nil {
		err = errors.New("it returns nothing")
	}
	if err != nil {
		var none T
		return none, err
	}
	return *out.Return, nil
}

// plain is a text of a guest as it is passed on: short, and without what a terminal would
// not print as it is.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), mostText)], ""))
}

// GuestFacts are what the agent in the guest of the domain of this name says of the guest:
// the agent's version and commands, the name, the operating system and the time zone of the
// guest, and whether its file systems are frozen. What the agent does not know stays empty;
// an agent that does not answer is an error.
func (c *Connection) GuestFacts(ctx context.Context, name string) (vmi.VirtualMachineInstanceGuestAgentInfo, error) {
	var out vmi.VirtualMachineInstanceGuestAgentInfo
	info, err := ask[struct {
		Version  string `json:"version"`
		Commands []struct {
			Name    string `json:"name"`
			Enabled bool   `json:"enabled"`
		} `json:"supported_commands"`
	}](ctx, c, name, "guest-info")
	if err != nil {
		return out, err
	}
	out.GuestAgentVersion = plain(info.Version)
	for _, k := range info.Commands[:min(len(info.Commands), mostListed)] {
		out.SupportedCommands = append(out.SupportedCommands, vmi.GuestAgentCommandInfo{Name: plain(k.Name), Enabled: k.Enabled})
	}
	if host, err := ask[struct {
		Name string `json:"host-name"`
	}](ctx, c, name, "guest-get-host-name"); err == nil {
		out.Hostname = plain(host.Name)
	}
	if zone, err := ask[struct {
		Zone   string `json:"zone"`
		Offset int    `json:"offset"`
	}](ctx, c, name, "guest-get-timezone"); err == nil {
		out.Timezone = fmt.Sprintf("%s, %d", plain(zone.Zone), zone.Offset)
	}
	if os, err := ask[map[string]any](ctx, c, name, "guest-get-osinfo"); err == nil {
		text := func(key string) string { s, _ := os[key].(string); return plain(s) }
		out.OS = vmi.GuestOSInfo{
			Name: text("name"), KernelRelease: text("kernel-release"), Version: text("version"), PrettyName: text("pretty-name"),
			VersionID: text("version-id"), KernelVersion: text("kernel-version"), Machine: text("machine"), ID: text("id"),
		}
	}
	if frozen, err := c.Frozen(ctx, name); err == nil && frozen {
		out.FSFreezeStatus = "frozen"
	}
	return out, nil
}

// GuestUsers are the users that are logged in, as the agent in the guest of the domain of
// this name says.
func (c *Connection) GuestUsers(ctx context.Context, name string) ([]vmi.VirtualMachineInstanceGuestOSUser, error) {
	said, err := ask[[]struct {
		User   string  `json:"user"`
		Domain string  `json:"domain"`
		Login  float64 `json:"login-time"`
	}](ctx, c, name, "guest-get-users")
	if err != nil {
		return nil, err
	}
	out := []vmi.VirtualMachineInstanceGuestOSUser{}
	for _, u := range said[:min(len(said), mostListed)] {
		out = append(out, vmi.VirtualMachineInstanceGuestOSUser{UserName: plain(u.User), Domain: plain(u.Domain), LoginTime: u.Login})
	}
	return out, nil
}

// GuestFileSystems are the mounted file systems of the guest, as the agent in the guest of
// the domain of this name says.
func (c *Connection) GuestFileSystems(ctx context.Context, name string) ([]vmi.VirtualMachineInstanceFileSystem, error) {
	said, err := ask[[]struct {
		Name       string      `json:"name"`
		MountPoint string      `json:"mountpoint"`
		Type       string      `json:"type"`
		Used       json.Number `json:"used-bytes"`
		Total      json.Number `json:"total-bytes"`
		Disks      []struct {
			Serial string `json:"serial"`
			Bus    string `json:"bus-type"`
		} `json:"disk"`
	}](ctx, c, name, "guest-get-fsinfo")
	if err != nil {
		return nil, err
	}
	bytes := func(n json.Number) int64 {
		i, err := n.Int64()
		if err != nil {
			return 0
		}
		return max(i, 0)
	}
	out := []vmi.VirtualMachineInstanceFileSystem{}
	for _, f := range said[:min(len(said), mostListed)] {
		s := vmi.VirtualMachineInstanceFileSystem{
			DiskName: plain(f.Name), MountPoint: plain(f.MountPoint), FileSystemType: plain(f.Type), UsedBytes: bytes(f.Used), TotalBytes: bytes(f.Total),
		}
		for _, d := range f.Disks[:min(len(f.Disks), 16)] {
			s.Disk = append(s.Disk, vmi.VirtualMachineInstanceFileSystemDisk{Serial: plain(d.Serial), BusType: plain(d.Bus)})
		}
		out = append(out, s)
	}
	return out, nil
}

// freezeTimeout is how long libvirt waits for a freeze or a thaw, in seconds: what the
// guest has not written yet is written first.
const freezeTimeout = 30

// Frozen says whether the guest's file systems are frozen, as the agent in the guest of
// the domain of this name says.
func (c *Connection) Frozen(ctx context.Context, name string) (bool, error) {
	status, err := ask[string](ctx, c, name, "guest-fsfreeze-status")
	return status == "frozen", err
}

// Freeze has the agent in the guest of the domain of this name freeze the guest's file
// systems, and says whether there are any that can be. It is no error if they are frozen
// already. It takes up to half a minute.
func (c *Connection) Freeze(ctx context.Context, name string) (frozen bool, err error) {
	frozen, err = c.Frozen(ctx, name)
	if err != nil || frozen {
		return frozen, err
	}
	n, err := askFor[int](ctx, c, freezeTimeout, name, "guest-fsfreeze-freeze")
	return n > 0, err
}

// Thaw has it thaw them. It is no error if they are not frozen.
func (c *Connection) Thaw(ctx context.Context, name string) error {
	_, err := askFor[int](ctx, c, freezeTimeout, name, "guest-fsfreeze-thaw")
	return err
}
