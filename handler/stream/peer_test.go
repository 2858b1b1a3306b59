package stream

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// about is the path of a request of a handler about migration m1 of the VMI to the pod.
func about(pod types.UID, call protocol.Call, stream protocol.Stream) protocol.Path {
	return protocol.Path{Target: target(on("n1"), pod), Call: call, Stream: stream, Migration: "m1"}
}

// accepts has a handler accept migration m1 to pod-1, from the handler with the certificate.
func accepts(source Certificate) func(*ServerConfig) {
	return func(c *ServerConfig) {
		c.Peer = func(p protocol.Path, certificate string) bool {
			return certificate == source.Hash && p.Migration == "m1" && p.Target.UID == "u1" && p.Target.Pod == "pod-1"
		}
	}
}

func newCertificate(t testing.TB) Certificate {
	c, err := NewCertificate(time.Now())
	require.NoError(t, err)
	return c
}

func TestAnAcceptedHandlerPreparesSendsAndFinishes(t *testing.T) {
	t.Parallel()
	source := newCertificate(t)
	r := newRoad(t, accepts(source))
	peer, err := r.dialer.Handler(t.Context(), "n1", "")
	require.NoError(t, err)
	require.Equal(t, Peer{Certificate: r.hash, Address: r.addr}, peer)
	c := source.Client(peer)
	for _, call := range []protocol.Call{protocol.CallMigrationPrepare, protocol.CallMigrationFinish} {
		var answer struct{ Call, Pod string }
		require.NoError(t, c.Call(t.Context(), about("pod-1", call, ""), protocol.MigrationStep{UID: "m1"}, &answer))
		require.Equal(t, string(call), answer.Call)
		require.Equal(t, "pod-1", answer.Pod)
	}
	for _, s := range []protocol.Stream{protocol.StreamMigrationMemory, protocol.StreamMigrationDisks} {
		conn, err := c.Stream(t.Context(), about("pod-1", "", s))
		require.NoError(t, err)
		defer conn.Close()
		echoes(t, conn, "memory")
	}
	require.Zero(t, r.requests+r.reviews, "there are no tokens")
}

func TestAttackNoOtherHandlerPodOrMigrationIsAdmitted(t *testing.T) {
	t.Parallel()
	source, foreign := newCertificate(t), newCertificate(t)
	r := newRoad(t, accepts(source))
	peer, err := r.dialer.Handler(t.Context(), "n1", "")
	require.NoError(t, err)
	own, stranger := source.Client(peer), foreign.Client(peer)
	var none Certificate // that shows none
	stolen := source     // without its key
	stolen.tls.PrivateKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	two := source
	two.tls.Certificate = [][]byte{source.tls.Certificate[0], foreign.tls.Certificate[0]}
	prepare, memory := about("pod-1", protocol.CallMigrationPrepare, ""), about("pod-1", "", protocol.StreamMigrationMemory)
	with := func(p protocol.Path, change func(*protocol.Path)) protocol.Path {
		change(&p)
		return p
	}
	for name, tt := range map[string]struct {
		client *PeerClient
		path   protocol.Path
	}{
		"another certificate":              {stranger, prepare},
		"no certificate":                   {none.Client(peer), prepare},
		"the certificate without its key":  {stolen.Client(peer), prepare},
		"several certificates":             {two.Client(peer), prepare},
		"a stream by another certificate":  {stranger, memory},
		"another pod":                      {own, about("pod-2", protocol.CallMigrationPrepare, "")},
		"a stream to another pod":          {own, about("pod-2", "", protocol.StreamMigrationMemory)},
		"no pod":                           {own, about("", protocol.CallMigrationPrepare, "")},
		"another VMI":                      {own, with(prepare, func(p *protocol.Path) { p.Target.UID = "u2" })},
		"any VMI":                          {own, with(prepare, func(p *protocol.Path) { p.Target.UID = "" })},
		"another migration":                {own, with(memory, func(p *protocol.Path) { p.Migration = "m0" })},
		"no migration":                     {own, with(memory, func(p *protocol.Path) { p.Migration = "" })},
		"a call of users":                  {own, about("pod-1", protocol.CallPause, "")},
		"a stream of users":                {own, about("pod-1", "", protocol.StreamConsole)},
		"a call of virt-controller":        {own, about("pod-1", protocol.CallMigrationAccept, "")},
		"the abort":                        {own, about("pod-1", protocol.CallMigrationAbort, "")},
		"a call of the launcher's handler": {own, about("pod-1", protocol.CallMigrationPerform, "")},
	} {
		if tt.path.Stream != "" {
			_, err = tt.client.Stream(t.Context(), tt.path)
		} else {
			err = tt.client.Call(t.Context(), tt.path, protocol.MigrationStep{UID: "m1"}, nil)
		}
		require.Error(t, err, name)
		if name != "the certificate without its key" { // it ends before it is asked
			require.ErrorAs(t, err, &denied{}, name)
		}
	}
	require.Zero(t, r.reviews)
	require.Zero(t, r.guests.opened.Load(), "no stream was opened")
	require.Zero(t, r.guests.called.Load(), "no call was made")
	require.NoError(t, own.Call(t.Context(), prepare, protocol.MigrationStep{}, nil), "the accepted one is")
}

func TestAttackAHandlerWithAnotherCertificateIsSentNothing(t *testing.T) {
	t.Parallel()
	source := newCertificate(t)
	r := newRoad(t, accepts(source))
	c := source.Client(Peer{Certificate: newCertificate(t).Hash, Address: r.addr})
	require.ErrorIs(t, c.Call(t.Context(), about("pod-1", protocol.CallMigrationPrepare, ""), nil, nil), errCertificate)
	_, err := c.Stream(t.Context(), about("pod-1", "", protocol.StreamMigrationMemory))
	require.ErrorIs(t, err, errCertificate)
	require.Zero(t, r.guests.opened.Load()+r.guests.called.Load())
}

func TestAttackTheBytesOfAPrepareDoNothingWhenTheyAreSentAgain(t *testing.T) {
	t.Parallel()
	source := newCertificate(t)
	r := newRoad(t, accepts(source))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	said := make(chan []byte, 1)
	go func() { // who has the network between the nodes, and keeps what the source says
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		far, err := net.Dial("tcp", r.addr)
		if err != nil {
			return
		}
		defer far.Close()
		go func() { _, _ = io.Copy(conn, far); conn.Close() }()
		var b bytes.Buffer
		_, _ = io.Copy(io.MultiWriter(far, &b), conn)
		said <- b.Bytes()
	}()
	prepare := about("pod-1", protocol.CallMigrationPrepare, "")
	require.NoError(t, source.Client(Peer{Certificate: r.hash, Address: l.Addr().String()}).Call(t.Context(), prepare, protocol.MigrationStep{UID: "m1"}, nil))
	require.EqualValues(t, 1, r.guests.called.Load())
	again, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer again.Close()
	before := <-said
	require.NotEmpty(t, before)
	_, err = again.Write(before)
	require.NoError(t, err)
	require.NoError(t, again.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.Copy(io.Discard, again)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server ends it")
	require.EqualValues(t, 1, r.guests.called.Load())
	require.Zero(t, r.guests.opened.Load())
}

func TestAHandlerThatAcceptsNoneAsksForNoCertificate(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	asked := false
	conn, err := tls.Dial("tcp", r.addr, &tls.Config{InsecureSkipVerify: true, //nolint:gosec // a stranger
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return &tls.Certificate{}, nil
		}})
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.False(t, asked)
	source := newCertificate(t)
	err = source.Client(Peer{Certificate: r.hash, Address: r.addr}).Call(t.Context(), about("pod-1", protocol.CallMigrationPrepare, ""), nil, nil)
	require.ErrorAs(t, err, &denied{})
}

func TestATokenIsGoodForFourCallsOfMigrationsOnly(t *testing.T) {
	t.Parallel()
	r := newRoad(t, accepts(newCertificate(t)))
	for call, want := range map[protocol.Call]bool{
		protocol.CallMigrationAnnounce: true, protocol.CallMigrationAccept: true, protocol.CallMigrationStart: true, protocol.CallMigrationAbort: true,
		protocol.CallMigrationBegin: false, protocol.CallMigrationPrepare: false, protocol.CallMigrationPerform: false,
		protocol.CallMigrationFinish: false, protocol.CallMigrationConfirm: false,
	} {
		err := r.dialer.Of("pod-1").Call(t.Context(), on("n1"), call, protocol.MigrationStep{UID: "m1"}, nil)
		if want {
			require.NoError(t, err, call)
		} else {
			requireRefusal(t, err, protocol.ReasonUnknown)
		}
	}
	for _, s := range []protocol.Stream{protocol.StreamMigrationMemory, protocol.StreamMigrationDisks} {
		_, err := r.dialer.Of("pod-1").Stream(t.Context(), on("n1"), s)
		requireRefusal(t, err, protocol.ReasonUnknown)
	}
}

func TestAMigrationHasPlacesOfItsOwn(t *testing.T) {
	t.Parallel()
	source := newCertificate(t)
	r := newRoad(t, accepts(source), func(c *ServerConfig) { c.StreamsPerVMI, c.Streams = 1, 1 })
	user, err := r.dialer.Stream(t.Context(), on("n1"), protocol.StreamConsole)
	require.NoError(t, err)
	defer user.Close()
	_, err = r.dialer.Stream(t.Context(), on("n1"), protocol.StreamConsole)
	requireRefusal(t, err, protocol.ReasonBusy)
	c := source.Client(Peer{Certificate: r.hash, Address: r.addr})
	for range streamsPerMigration {
		conn, err := c.Stream(t.Context(), about("pod-1", "", protocol.StreamMigrationMemory))
		require.NoError(t, err)
		defer conn.Close()
	}
	_, err = c.Stream(t.Context(), about("pod-1", "", protocol.StreamMigrationDisks))
	requireRefusal(t, err, protocol.ReasonBusy)
	require.NoError(t, c.Call(t.Context(), about("pod-1", protocol.CallMigrationFinish, ""), protocol.MigrationStep{}, nil), "the streams are in no call's way")
	require.NoError(t, r.dialer.Call(t.Context(), on("n1"), protocol.CallMigrationStart, protocol.MigrationStep{}, nil), "nor are those of users")
}
