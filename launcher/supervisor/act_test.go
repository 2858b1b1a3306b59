package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher"
)

// other is an action that the supervisor does not know.
type other struct{ launcher.Action }

func TestAnActionThatIsNotKnownIsAnError(t *testing.T) {
	err := (&Supervisor{}).act(t.Context(), launcher.Plan{Actions: []launcher.Action{other{}}})
	require.EqualError(t, err, "execute supervisor.other: no such action")
}
