package supervisor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestACallOfAnEmbedderHasADomainInItsName(t *testing.T) {
	for name, fault := range map[protocol.Call]string{
		"flush.example.com": "",
		"flush":             `call "flush" of the launcher: it needs a domain in its name, such as flush.example.com`,
		protocol.CallReset:  `call "reset" of the launcher: it needs a domain in its name, such as reset.example.com`,
	} {
		err := wrongCall(Config{Calls: map[protocol.Call]func(context.Context, []byte) (any, error){name: nil}})
		if fault == "" {
			require.NoError(t, err, name)
			continue
		}
		require.EqualError(t, err, fault)
	}
	_, err := New(Config{Namespace: "ns", Name: "vm", UID: "u", Calls: map[protocol.Call]func(context.Context, []byte) (any, error){"flush": nil}})
	require.ErrorContains(t, err, "needs a domain in its name", "and a launcher is not made")
}
