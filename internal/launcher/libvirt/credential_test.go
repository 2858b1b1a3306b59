package libvirt

import (
	"context"
	"errors"
	"fmt"
	"testing"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"
)

func TestAttackNoErrorOfAnAgentHasWordsOfTheGuest(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
		is   error
	}{
		"the agent's error":      {golibvirt.Error{Code: uint32(golibvirt.ErrInternalError), Message: "cannot set hunter2"}, "the agent refused", ErrAgentRefused},
		"a failed command":       {golibvirt.Error{Code: uint32(golibvirt.ErrAgentCommandFailed), Message: "hunter2"}, "the agent refused", ErrAgentRefused},
		"no answer":              {golibvirt.Error{Code: uint32(golibvirt.ErrAgentUnresponsive), Message: "hunter2"}, "no answer of its agent", nil},
		"no domain":              {golibvirt.Error{Code: uint32(golibvirt.ErrNoDomain), Message: "hunter2"}, "no such domain", ErrNotFound},
		"another one":            {golibvirt.Error{Code: 55, Message: "hunter2"}, "libvirt error 55", nil},
		"no answer of libvirt":   {fmt.Errorf("hunter2: %w", context.DeadlineExceeded), "no answer of its agent: context deadline exceeded", context.DeadlineExceeded},
		"one that is no libvirt": {errors.New("hunter2"), "libvirt error 0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := agentFailure("set the password of a user in", "d", nil, failure(askAgent, "d", tt.err))
			require.EqualError(t, err, "set the password of a user in domain d: "+tt.want)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
		})
	}
	require.NoError(t, agentFailure("set", "d", nil, nil))
}
