package process

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheOutputOfADaemonIsTheSameEachTime(t *testing.T) {
	d := NewDaemon(Config{})
	d.log(strings.NewReader("2026-11-21 20:20:49.355+0000: 36: info : libvirt version: 9.0.0\n" +
		"2026-11-21 20:20:49.360+0000: 41: error : virGDBusGetSystemBus:99 : no bus: at 12:00\n"))
	require.Equal(t, "error : virGDBusGetSystemBus:99 : no bus: at 12:00", d.Output())
	d.log(strings.NewReader("libvirtd: cannot open shared object file\n"))
	require.Equal(t, "libvirtd: cannot open shared object file", d.Output())
}

func TestAttackNoLineOfADaemonHasWordsOfTheAgent(t *testing.T) {
	var log strings.Builder
	d := NewDaemon(Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	at := "2026-11-21 20:20:49.355+0000: 36: error : "
	for _, said := range []string{
		"qemuAgentCheckError:1168 : internal error: unable to execute QEMU agent command 'guest-set-user-password': cannot set hunter2",
		"qemuAgentCheckError:1168 : internal error: unable to execute QEMU agent command 'guest-set-user-password': cannot set\nhunter2\n\n hunter2",
		"virJSONValueFromString:1650 : internal error: cannot parse json {hunter2: lexical error",
		"qemuAgentIOProcessLine:320 : internal error: Parser error 'hunter2'",
	} {
		d.log(strings.NewReader(at + said + "\n"))
		require.Contains(t, d.Output(), "the answer of the guest's agent is left out")
		require.Contains(t, d.Output(), said[:strings.Index(said, ":")], "who logged it")
	}
	require.NotContains(t, log.String(), "hunter2")
	d.log(strings.NewReader(at + "qemuMonitorIO:500 : internal error: End of file from qemu monitor\ngone\n"))
	require.Equal(t, "gone", d.Output(), "other lines are whole")
	require.Contains(t, log.String(), "End of file from qemu monitor")
}

func TestTheFailureOfADaemonHoldsItsLastOutput(t *testing.T) {
	d := NewDaemon(Config{})
	require.Empty(t, d.Failure())
	d.ended(errors.New("libvirtd ended with exit code 1"))
	require.Equal(t, "libvirtd ended with exit code 1", d.Failure())
	d.log(strings.NewReader("no bus\n"))
	d.ended(errors.New("libvirtd ended with exit code 1"))
	require.Equal(t, `libvirtd ended with exit code 1; its last output is "no bus"`, d.Failure())
}

func TestTheFailureOfADaemonIsNotThatOfTheNextOneThatRuns(t *testing.T) {
	d := NewDaemon(Config{})
	d.ended(errors.New("libvirtd was killed"))
	d.runs(7)
	require.Equal(t, "libvirtd was killed", d.Failure(), "it may end for the same cause")
	d.since = d.since.Add(-healthy)
	require.Empty(t, d.Failure(), "it does not answer for another cause")
	d.runs(0)
	require.Equal(t, "libvirtd was killed", d.Failure())
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{})
	require.NoError(t, err)
	d.runs(p.Pid)
	d.Kill()
	_, err = p.Wait()
	require.NoError(t, err)
	d.runs(0)
	d.ended(errors.New("libvirtd was killed by signal 9"))
	require.Empty(t, d.Failure(), "the launcher has killed it")
	d.ended(errors.New("libvirtd was killed by signal 9"))
	require.Equal(t, "libvirtd was killed by signal 9", d.Failure())
}

func TestHowAProcessEndedIsASentence(t *testing.T) {
	for status, want := range map[unix.WaitStatus]string{
		0:      "ended with exit code 0",
		7 << 8: "ended with exit code 7",
		9:      "was killed by signal 9 (killed), as the kernel does when the memory of a pod is used up",
		11:     "was killed by signal 11 (segmentation fault)",
	} {
		require.Equal(t, want, Ended(status))
	}
}
