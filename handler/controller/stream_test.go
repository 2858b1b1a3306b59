package controller

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// own is the launcher of the VMI.
var own = protocol.Target{Namespace: "default", Name: "testvmi", UID: vmitest.UID}

// serving is a world whose launcher serves a console that echoes, and answers calls.
func serving(t *testing.T) (*world, *Controller) {
	t.Helper()
	w := newWorld(t)
	w.streams = map[protocol.Stream]func(context.Context) (net.Conn, error){
		protocol.StreamConsole: func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(far, far); _ = far.Close() }()
			return near, nil
		},
		protocol.StreamScreenIfFree: func(context.Context) (net.Conn, error) {
			return nil, &vmi.Refusal{Finding: vmi.Finding{Reason: protocol.ReasonBusy, Message: "the screen is in use"}}
		},
	}
	w.questions = map[protocol.Call]func(context.Context, []byte) (any, error){
		protocol.CallFreeze:   func(_ context.Context, options []byte) (any, error) { return json.RawMessage(options), nil },
		protocol.CallUnfreeze: func(context.Context, []byte) (any, error) { return nil, nil },
		protocol.CallGuestOSInfo: func(context.Context, []byte) (any, error) {
			return nil, &vmi.Refusal{Finding: vmi.Finding{Reason: protocol.ReasonNoAgent, Message: "there is\x1b[2J no agent"}}
		},
		protocol.CallUserList: func(context.Context, []byte) (any, error) {
			return strings.Repeat("x", protocol.MaxAnswer), nil
		},
		protocol.CallFileSystemList: func(context.Context, []byte) (any, error) { return map[string]string{"a": "b\x1b[2J"}, nil },
	}
	w.launch(running, func(s *control.Server, _ protocol.Desired) error { s.Publish(running); return nil })
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	return w, c
}

func TestAStreamOfAVMILeadsToItsLauncher(t *testing.T) {
	t.Parallel()
	_, c := serving(t)
	conn, err := c.Stream(t.Context(), own, protocol.StreamConsole)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "hello")
	require.NoError(t, err)
	b := make([]byte, 5)
	_, err = io.ReadFull(conn, b)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b))
}

func TestWhatALauncherRefusesHasItsReason(t *testing.T) {
	t.Parallel()
	w, c := serving(t)
	for _, tt := range []struct {
		name, vmi string
		uid, pod  types.UID
		stream    protocol.Stream
		want      string
	}{
		{"a screen in use", "testvmi", vmitest.UID, podUID, protocol.StreamScreenIfFree, protocol.ReasonBusy},
		{"a stream of the future", "testvmi", vmitest.UID, "", "of the future", protocol.ReasonUnknown},
		{"descriptors", "testvmi", vmitest.UID, "", protocol.StreamNetworkNamespace, protocol.ReasonUnknown},
		{"another UID", "testvmi", "another", "", protocol.StreamConsole, protocol.ReasonNotFound},
		{"another VMI", "other", vmitest.UID, "", protocol.StreamConsole, protocol.ReasonNotFound},
		{"another pod", "testvmi", vmitest.UID, otherPod, protocol.StreamConsole, protocol.ReasonNotFound},
	} {
		_, err := c.Stream(t.Context(), protocol.Target{Namespace: "default", Name: tt.vmi, UID: tt.uid, Pod: tt.pod}, tt.stream)
		var r *vmi.Refusal
		require.ErrorAs(t, err, &r, tt.name)
		require.Equal(t, tt.want, r.Reason, "%s: %s", tt.name, r.Message)
	}
	w.change(func(v *vmi.VirtualMachineInstance) { v.Status.NodeName = "n2" })
	w.eventually("the VMI of another node is not found", func() bool {
		_, err := c.Stream(t.Context(), own, protocol.StreamConsole)
		r, ok := err.(*vmi.Refusal) //nolint:errorlint // every error is one
		return ok && r.Reason == protocol.ReasonNotFound
	})
}

func TestAttackTheAnswerOfALauncherIsPassedOnWithinLimits(t *testing.T) {
	t.Parallel()
	_, c := serving(t)
	call := func(name protocol.Call, options string) (string, *vmi.Refusal) {
		answer, err := c.Call(t.Context(), own, name, json.RawMessage(options))
		if err == nil {
			return string(answer), nil
		}
		var r *vmi.Refusal
		require.ErrorAs(t, err, &r)
		return "", r
	}
	answer, refused := call(protocol.CallFreeze, `{"unfreezeTimeout":"5s"}`)
	require.Nil(t, refused)
	require.Equal(t, `{"unfreezeTimeout":"5s"}`, answer)
	answer, refused = call(protocol.CallUnfreeze, "")
	require.Nil(t, refused)
	require.Empty(t, answer)
	answer, refused = call(protocol.CallFileSystemList, "")
	require.Nil(t, refused)
	require.Equal(t, `{"a":"b [2J"}`, answer)
	_, refused = call(protocol.CallGuestOSInfo, "")
	require.Equal(t, vmi.Finding{Reason: protocol.ReasonNoAgent, Message: "guestosinfo VMI default/testvmi: there is [2J no agent"}, refused.Finding)
	_, refused = call(protocol.CallUserList, "")
	require.Equal(t, protocol.ReasonUnavailable, refused.Reason)
	_, refused = call("of the future", "")
	require.Equal(t, protocol.ReasonUnknown, refused.Reason)
}
