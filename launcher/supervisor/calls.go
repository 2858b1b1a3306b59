package supervisor

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// answers are the answers to the calls that have options or an answer: those about the
// guest, those of migrations, and those of the Config.
func (s *Supervisor) answers() map[protocol.Call]func(context.Context, []byte) (any, error) {
	all := s.guestCalls()
	maps.Copy(all, s.migrationCalls())
	maps.Copy(all, s.config.Calls)
	return all
}

// wrongCall says why a call of the Config may be one of a later release.
func wrongCall(c Config) error {
	for name := range c.Calls {
		if !strings.Contains(string(name), ".") {
			return fmt.Errorf("call %q of the launcher: it needs a domain in its name, such as %s.example.com", name, name)
		}
	}
	return nil
}
