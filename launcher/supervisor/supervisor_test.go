package supervisor

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestTheLogLevelFollowsTheClustersSettings(t *testing.T) {
	s := &Supervisor{config: Config{LogLevel: &slog.LevelVar{}}, facts: newFacts()}
	for _, tt := range []struct {
		verbosity config.Verbosity
		want      slog.Level
	}{{0, slog.LevelInfo}, {4, slog.LevelDebug}, {2, slog.LevelInfo}} {
		require.NoError(t, s.put(protocol.Desired{Settings: config.Launcher{Verbosity: tt.verbosity}}))
		require.Equal(t, tt.want, s.config.LogLevel.Level(), tt.verbosity)
	}
}
