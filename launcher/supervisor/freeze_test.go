package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestAFreezeThatCannotBeReadIsMalformed(t *testing.T) {
	for _, options := range []string{`{"unfreezeTimeout":"-3s"}`, `{"unfreezeTimeout":3}`, `{"unfreezeTimeout":"soon"}`, `[]`} {
		_, err := new(Supervisor).freeze(t.Context(), []byte(options))
		var refusal *vmi.Refusal
		require.ErrorAs(t, err, &refusal, options)
		require.Equal(t, protocol.ReasonMalformed, refusal.Reason)
	}
}
