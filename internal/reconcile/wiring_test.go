package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnErrorOfWiringNamesAllFieldsThatAreNotSet(t *testing.T) {
	require.NoError(t, Missing("controller.Config", map[string]bool{"Client": false}))
	require.EqualError(t, Missing("controller.Config", map[string]bool{"Kube": true, "Home": false, "Client": true}), "controller.Config: set Client, Kube")
}

func TestASecondRunIsAnError(t *testing.T) {
	var o Once
	require.NoError(t, o.Begin("controller"))
	require.ErrorIs(t, o.Begin("controller"), ErrRunTwice)
	require.EqualError(t, o.Begin("controller"), "run the controller: it has run already: make another one")
}
