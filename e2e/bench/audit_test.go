package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWritesOfTheComponentsAreCounted(t *testing.T) {
	log := `{"stage":"ResponseComplete","verb":"create","user":{"username":"system:serviceaccount:kubevirt:virt-controller"},"objectRef":{"resource":"pods","namespace":"a","name":"virt-launcher-web-x1"}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:kubevirt:virt-handler"},"objectRef":{"resource":"virtualmachineinstances","namespace":"a","name":"web"}}
{"stage":"RequestReceived","verb":"patch","user":{"username":"system:serviceaccount:kubevirt:virt-handler"},"objectRef":{"resource":"virtualmachineinstances","namespace":"a","name":"web"}}
{"stage":"ResponseComplete","verb":"get","user":{"username":"system:serviceaccount:kubevirt:virt-handler"},"objectRef":{"resource":"virtualmachineinstances","namespace":"a","name":"web"}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"system:node:n1"},"objectRef":{"resource":"pods","namespace":"a","name":"virt-launcher-web-x1"}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:kubevirt:virt-handler"},"objectRef":{"resource":"virtualmachineinstances","namespace":"b","name":"web"}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"system:serviceaccount:kubevirt:virt-handler"},"objectRef":{"resource":"events","namespace":"a","name":"web.17"}}
`
	objects, events, err := countWrites(strings.NewReader(log), "a", "web")
	require.NoError(t, err)
	require.Equal(t, 2, objects)
	require.Equal(t, 1, events)

	each, err := countEach(strings.NewReader(log), "a")
	require.NoError(t, err)
	require.Equal(t, map[string]int{
		"virt-controller: create pods": 1, "virt-handler: patch virtualmachineinstances": 1, "virt-handler events": 1,
	}, each)
}
