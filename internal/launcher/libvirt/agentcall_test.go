package libvirt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"
)

// hostile is what a guest may have in the text of its agent: orders to a terminal, and
// characters that turn a line around.
const hostile = "\x1b[2J\u202ehunter2\x07\n"

// liar is a libvirt daemon whose domain has an agent that a guest wrote.
type liar struct {
	code   golibvirt.ErrorNumber // of the error about the agent; 0: it answers
	answer string
	asked  atomic.Int64 // how often it was to pass something to the agent
}

// Numbers of libvirt's protocol (src/remote/remote_protocol.x and qemu_protocol.x).
const (
	procConnectOpen, procLookupByName, procReboot, procAuthList, procShutdownFlags = 1, 23, 27, 66, 258
	programQEMU, procAgentCommand                                                  = 0x20008087, 3
	byAgent                                                                        = 2 // a flag of a reboot and of a shutdown
)

// dial connects a Connection to it.
func (l *liar) dial(t *testing.T) *Connection {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(conn)
		}
	}()
	c, err := Dial(t.Context(), socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (l *liar) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var length uint32
		if binary.Read(conn, binary.BigEndian, &length) != nil || length < 28 || length > 1<<20 {
			return
		}
		call := make([]byte, length-4)
		if _, err := io.ReadFull(conn, call); err != nil {
			return
		}
		word := func(n int) uint32 { return binary.BigEndian.Uint32(call[4*n:]) }
		status, body := l.reply(word(0), word(2), call[24:])
		var out bytes.Buffer
		for _, w := range []uint32{uint32(28 + len(body)), word(0), word(1), word(2), 1, word(4), status} {
			_ = binary.Write(&out, binary.BigEndian, w)
		}
		out.Write(body)
		if _, err := conn.Write(out.Bytes()); err != nil {
			return
		}
	}
}

// reply is the status and the body of the answer to a procedure.
func (l *liar) reply(program, procedure uint32, arguments []byte) (status uint32, body []byte) {
	last := uint32(0)
	if len(arguments) >= 4 {
		last = binary.BigEndian.Uint32(arguments[len(arguments)-4:])
	}
	agent := program == programQEMU && procedure == procAgentCommand ||
		program != programQEMU && (procedure == procReboot || procedure == procShutdownFlags) && last == byAgent
	switch {
	case agent:
		l.asked.Add(1)
		if l.code == 0 {
			return 0, append(words(1), text(l.answer)...)
		}
		body := append(words(uint32(l.code), 0, 1), text(hostile)...)
		return 1, append(body, words(2)...)
	case program != programQEMU && procedure == procAuthList:
		return 0, words(1, 0)
	case program != programQEMU && procedure == procConnectOpen:
		return 0, nil
	case program != programQEMU && procedure == procLookupByName:
		return 0, append(text("d"), append(make([]byte, 16), words(1)...)...)
	}
	body = append(words(uint32(golibvirt.ErrNoSupport), 0, 1), text("another call")...)
	return 1, append(body, words(2)...)
}

func words(all ...uint32) (out []byte) {
	for _, w := range all {
		out = binary.BigEndian.AppendUint32(out, w)
	}
	return out
}

// text is a text in XDR.
func text(s string) []byte {
	out := append(words(uint32(len(s))), s...)
	return append(out, make([]byte, (4-len(s)%4)%4)...)
}

// calls are the methods of a Connection that may wait for libvirt.
func calls() (all []reflect.Method) {
	of := reflect.TypeFor[*Connection]()
	for i := range of.NumMethod() {
		m := of.Method(i)
		if m.Type.NumIn() > 1 && m.Type.In(1) == reflect.TypeFor[context.Context]() {
			all = append(all, m)
		}
	}
	return all
}

// make calls the method with arguments of no meaning, and returns its error. One that
// cannot do with a nil interface panics, before it asks anything.
func (l *liar) make(t *testing.T, c *Connection, m reflect.Method) (err error) {
	t.Helper()
	defer func() { _ = recover() }()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // of what waits for the guest
	defer cancel()
	in := []reflect.Value{reflect.ValueOf(c), reflect.ValueOf(ctx)}
	for i := 2; i < m.Type.NumIn(); i++ {
		if m.Type.IsVariadic() && i == m.Type.NumIn()-1 {
			break
		}
		v := reflect.New(m.Type.In(i)).Elem()
		switch v.Kind() {
		case reflect.String:
			v.SetString("d")
		case reflect.Func:
			v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { panic("called") }))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		}
		in = append(in, v)
	}
	for _, out := range m.Func.Call(in) {
		if e, ok := out.Interface().(error); ok {
			err = e
		}
	}
	return err
}

// requireCleanError requires that nothing that prints, logs or encodes the error has words
// of the guest.
func requireCleanError(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = unwrapped(err) {
		for _, verb := range []string{"%v", "%s", "%q", "%x", "%+v", "%#v"} {
			requireClean(t, fmt.Sprintf(verb, err))
		}
		encoded, _ := json.Marshal(err) // not each kind of error can be
		requireClean(t, string(encoded))
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "err", err)
		requireClean(t, log.String())
	}
}

func unwrapped(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // each is looked at
		return all.Unwrap()[0]
	}
	if one, ok := err.(interface{ Unwrap() error }); ok { //nolint:errorlint // the same
		return one.Unwrap()
	}
	return nil
}

// requireClean requires that there is nothing of the guest in a text.
func requireClean(t *testing.T, s string) {
	t.Helper()
	require.NotContains(t, s, "hunter2")
	require.NotContains(t, s, fmt.Sprintf("%x", "hunter2"))
	require.NotContains(t, s, "\x1b")
}

// It goes over every call: each method is called, and those that reach the agent are those
// whose errors are looked at. So a further call needs no line here.
func TestAttackNoCallToTheAgentReturnsAnErrorOfTheGuest(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	for name, l := range map[string]*liar{
		"the command failed":    {code: golibvirt.ErrAgentCommandFailed},
		"an error without code": {code: golibvirt.ErrInternalError},
		"it is unresponsive":    {code: golibvirt.ErrAgentUnresponsive},
		"it is not supported":   {code: golibvirt.ErrOperationUnsupported},
		"no domain":             {code: golibvirt.ErrNoDomain},
		"no JSON":               {answer: hostile},
		"an error as an answer": {answer: `{"error":{"class":"` + "hunter2" + `","desc":"hunter2"}}`},
		"a text":                {answer: `{"return":"\u001b[2J\u202ehunter2"}`},
		"a number as a text":    {answer: `{"return":{"pid":"hunter2","exited":"hunter2","version":"\u001bhunter2"}}`},
		"a list of texts":       {answer: `{"return":["hunter2",{"name":7}]}`},
		"much":                  {answer: `{"return":"` + strings.Repeat("hunter2", maxAnswer) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := l.dial(t)
			for _, m := range calls() {
				before := l.asked.Load()
				err := l.make(t, c, m)
				if l.asked.Load() > before {
					reached[m.Name] = true
					requireCleanError(t, err)
				}
			}
		})
	}
	for _, known := range []string{
		"AgentVersion", "Exec", "Freeze", "Frozen", "GuestFacts", "GuestFileSystems", "GuestUsers", "ObserveGuest", "PingAgent",
		"RebootByAgent", "SetAuthorizedKeys", "SetPassword", "ShutdownByAgent", "Thaw",
	} {
		require.True(t, reached[known], "%s asks the agent", known)
	}
}

func TestAnAnswerOfAGuestIsPrintedAsItsLength(t *testing.T) {
	t.Parallel()
	a := agentAnswer{hostile}
	for _, verb := range []string{"%v", "%s", "%q", "%x", "%+v", "%#v", "%d"} {
		require.Equal(t, fmt.Sprintf("an answer of %d bytes", len(hostile)), fmt.Sprintf(verb, a))
	}
	requireCleanError(t, fmt.Errorf("read %v: %v", a, []agentAnswer{a}))
	encoded, err := json.Marshal(map[string]any{"a": a})
	require.NoError(t, err)
	requireClean(t, string(encoded))
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "answer", a)
	requireClean(t, log.String())
}

// agentCalls matches the functions of libvirt that ask an agent, and the flags that have
// others ask it.
var agentCalls = regexp.MustCompile(`^(QEMUDomainAgentCommand|Domain(Fs|Fstrim|GetFsinfo|SetUserPassword|InterfaceAddresses|GetHostname|GetTime|SetTime|PmSuspend|GetGuest|SetGuest|AuthorizedSSHKeys)\w*|Domain\w*Agent|DomainVCPUGuest)$`)

func TestEveryCallToTheAgentIsMadeByTheOneFunction(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		inside := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && (f.Name == "toAgent" || f.Name == "requestAgent") {
				ast.Inspect(call, func(n ast.Node) bool { inside[n] = true; return true })
			}
			return true
		})
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && agentCalls.MatchString(s.Sel.Name) {
				found++
				require.True(t, inside[n], "%s: %s asks the agent: call it by toAgent", set.Position(n.Pos()), s.Sel.Name)
			}
			return true
		})
	}
	require.GreaterOrEqual(t, found, 4, "the names are those of the library")
}
