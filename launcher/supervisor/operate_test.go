package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher"
)

func TestEachKindOfOperationIsDoneInOnePlace(t *testing.T) {
	var kinds []launcher.OperationKind
	for _, o := range operations {
		require.NotNil(t, o.do, o.kind)
		message, _ := o.log(launcher.Device{})
		require.NotEmpty(t, message, o.kind)
		kinds = append(kinds, o.kind)
	}
	require.Equal(t, launcher.OperationKinds(), kinds)
}

func TestAnOperationThatIsNotKnownIsAnError(t *testing.T) {
	err := (&Supervisor{}).act(t.Context(), launcher.Plan{Operations: []launcher.Operation{{Kind: "other"}}})
	require.EqualError(t, err, "execute other: no such operation")
}
