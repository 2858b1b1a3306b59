package protocol

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestATerminationMessageIsOneReadableLine(t *testing.T) {
	for name, tt := range map[string]struct {
		end  End
		want string
	}{
		"a reason and a message":             {End{Reason: Crashed, Message: "QEMU was killed"}, "Crashed: QEMU was killed\n"},
		"the word of a grace period":         {End{Reason: Killed, Message: "late"}, "GracePeriodExceeded: late\n"},
		"lines become parts of a line":       {End{Reason: CannotStart, Message: "no disk\r\nno network\n"}, "CannotStart: no disk; no network\n"},
		"a terminal prints it as it is":      {End{Reason: Crashed, Message: "\x1b[31mred\a\xff\u200b"}, "Crashed: [31mred\n"},
		"no message":                         {End{Reason: Crashed, Message: ""}, "Crashed: \n"},
		"of a long message there is the end": {End{Reason: Crashed, Message: strings.Repeat("é", 4096) + "last"}, "Crashed: …" + strings.Repeat("é", 1020) + "last\n"},
		"a message with a colon":             {End{Reason: Crashed, Message: "QEMU: Shutdown: no"}, "Crashed: QEMU: Shutdown: no\n"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, tt.end.Termination()) })
	}
}

func TestATerminationMessageIsReadAsItWasWritten(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want End
		ok   bool
	}{
		"of the release before":    {"GracePeriodExceeded: the guest had not powered off\n", End{Reason: Killed, Message: "the guest had not powered off"}, true},
		"as a kubelet passes it":   {"Cancelled: a stop", End{Reason: Cancelled, Message: "a stop"}, true},
		"without a message":        {"Crashed:", End{Reason: Crashed, Message: ""}, true},
		"a reason of a newer one":  {"Adjourned: to node n2", End{}, false},
		"a reason of the cluster":  {"Evicted: by me", End{}, false},
		"a reason in small":        {"crashed: x", End{}, false},
		"a log":                    {"Crashed: x\ngoroutine 1", End{}, false},
		"an error of the program":  {"virt-launcher: listen for the handler: address in use", End{}, false},
		"nothing":                  {"", End{}, false},
		"only a reason":            {"Crashed", End{}, false},
		"a text for a terminal":    {"Crashed: \x1b]0;x\a", End{Reason: Crashed, Message: "]0;x"}, true},
		"no space after the colon": {"Crashed:x", End{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ParseTermination(tt.text)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, got)
		})
	}
}

func FuzzTermination(f *testing.F) {
	for _, s := range []string{"Crashed: QEMU was killed", "Crashed:", "Adjourned: x", "Shutdown: a\nb", "CannotStart: \xff\x00 ", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range endReasons {
			e, ok := ParseTermination(End{Reason: r, Message: text}.Termination())
			require.True(t, ok)
			require.Equal(t, r, e.Reason)
			requireReadable(t, e)
		}
		e, ok := ParseTermination(text)
		if !ok {
			require.Zero(t, e)
			return
		}
		require.Contains(t, endReasons, e.Reason)
		requireReadable(t, e)
	})
}

// requireReadable checks the message of an end that was read, and that it is read again
// as it is.
func requireReadable(t *testing.T, e End) {
	t.Helper()
	require.LessOrEqual(t, len(e.Message), maxEndMessage)
	require.True(t, utf8.ValidString(e.Message))
	require.NotContains(t, e.Message, "\n")
	require.False(t, strings.ContainsFunc(e.Message, func(r rune) bool { return !unicode.IsGraphic(r) }), "%q", e.Message)
	again, ok := ParseTermination(e.Termination())
	require.True(t, ok)
	require.Equal(t, e, again)
}

// A reason that is not in the list would be read as unknown.
func TestEveryReasonOfAnEndIsReadAgain(t *testing.T) {
	text, err := os.ReadFile("state.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`EndReason = "(\w+)"`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, declared, len(endReasons))
	for _, m := range declared {
		require.Contains(t, endReasons, EndReason(m[1]))
	}
}

func TestAnEndThatIsReportedHasAReasonOfALauncher(t *testing.T) {
	for _, r := range endReasons {
		require.Equal(t, &End{Reason: r}, State{Phase: Ended, End: &End{Reason: r}}.Sanitized().End)
	}
	for _, r := range []EndReason{"Evicted", "NodeRestarted", "shutdown", "a b", ""} {
		require.Equal(t, &End{Reason: UnknownReason}, State{Phase: Ended, End: &End{Reason: r}}.Sanitized().End)
	}
}
