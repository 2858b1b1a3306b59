package protocol

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestALauncherReportsNoMoreThanAStatusHolds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1<<18)
	disks := make([]Disk, 1<<14)
	for i := range disks {
		disks[i] = Disk{Name: "root", Target: "vda", SizeBytes: -1}
	}
	s := State{
		Reboots: 1<<63 - 1, Panics: -1, NotBooted: &vmi.Finding{Reason: "No Word", Message: long},
		Generation: 1<<63 - 1, Phase: Ended, Machine: long,
		VSOCKCID: 1<<32 - 1,
		Disks:    append([]Disk{{Name: long}, {Name: "root", Target: long}, {Name: "root"}, {Name: "a b", Target: "vda"}}, disks...),
		Finding:  &vmi.Finding{Reason: "No Word", Message: long},
		Agent:    &Agent{Version: long},
		End:      &End{Reason: EndReason(long), Message: long},
	}.Sanitized()
	require.Equal(t, int64(maxGeneration), s.Generation)
	require.Equal(t, int64(maxCount), s.Reboots)
	require.Zero(t, s.Panics)
	require.Equal(t, UnknownReason, s.NotBooted.Reason)
	require.Empty(t, s.Machine)
	require.Zero(t, s.VSOCKCID)
	require.Equal(t, &Agent{}, s.Agent)
	require.Len(t, s.Disks, maxDisks)
	require.Equal(t, Disk{Name: "root", Target: "vda"}, s.Disks[0])
	require.Equal(t, UnknownReason, s.Finding.Reason)
	require.Equal(t, EndReason(UnknownReason), s.End.Reason)
	p := State{Phase: Paused, Pause: &Pause{Cause: "No Word", Volume: long, Message: long}}.Sanitized()
	require.Equal(t, PauseCause(UnknownReason), p.Pause.Cause)
	require.Empty(t, p.Pause.Volume)
	for _, m := range []string{s.Finding.Message, s.NotBooted.Message, s.End.Message, p.Pause.Message} {
		require.LessOrEqual(t, len(m), maxMessage)
		require.True(t, strings.HasPrefix(m, "ää") && strings.HasSuffix(m, "ä…"), m)
	}
}

func TestAMessageIsOneLineThatATerminalPrintsAsItIs(t *testing.T) {
	t.Parallel()
	f := SanitizeFinding(vmi.Finding{Reason: "Broken", Message: "a\nb\x1b[31m\u202ec\u200b\xffé日\t."})
	require.Equal(t, "a b [31m c  é日 .", f.Message)
}

func TestAStateThatFitsIsKept(t *testing.T) {
	t.Parallel()
	kept := map[string]bool{}
	for name, s := range map[string]State{
		"a guest that runs": {
			Generation: 3, Phase: Running, Emulated: true, Machine: "pc-q35-7.2", VSOCKCID: 3, Agent: &Agent{Version: "7.2.22"},
			Finding: &vmi.Finding{Reason: "AttachFailed", Message: "no such file"},
			Disks:   []Disk{{Name: "root.disk-1", Target: "vda", SizeBytes: 5}}, Reboots: 3, Panics: 1, Frozen: true,
			NotBooted: &vmi.Finding{Reason: ReasonNothingRead, Message: "nothing was read"}, Credentials: &Credentials{Failure: "no such user", Note: "line 1 is odd"},
			KernelBoot: &vmi.KernelBootStatus{KernelInfo: &vmi.BootFileInfo{Checksum: 7}, InitrdInfo: &vmi.BootFileInfo{Checksum: 8}},
			Interfaces: []Interface{{Name: "eth0", MAC: "02:29:ef:a9:cb:99", Addresses: []string{"10.0.2.2", "fd10:0:2::2"}}},
			Links:      []Link{{Name: "default", State: "up"}, {Name: "lan", State: "down"}}, Movable: true,
			Migration: &Migration{UID: migrationUID, Stage: MigrationStays, Mode: vmi.MigrationPreCopy, Finding: &vmi.Finding{Reason: "Aborted", Message: "it was aborted"}},
		},
		"a guest that is paused": {Phase: Paused, Pause: &Pause{Cause: PausedByIOError, Volume: "root", Message: "full"}},
		"a guest that has ended": {Phase: Ended, End: &End{Reason: Shutdown, Message: "the guest powered off", Terminated: true}},
		"nothing":                {Phase: Waiting},
	} {
		require.Equal(t, s, s.Sanitized(), name)
		fields(reflect.ValueOf(s), "State", kept)
	}
	for field, filled := range kept {
		require.True(t, filled, "%s: no case shows that it is kept", field)
	}
}

// fields notes for each field below v whether it is set, there or in a value
// before.
func fields(v reflect.Value, path string, set map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v = reflect.New(v.Type().Elem())
		}
		fields(v.Elem(), path, set)
	case reflect.Slice:
		fields(reflect.Zero(v.Type().Elem()), path, set)
		for i := range v.Len() {
			fields(v.Index(i), path, set)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fields(v.Field(i), path+"."+v.Type().Field(i).Name, set)
		}
	default:
		set[path] = set[path] || !v.IsZero()
	}
}

func TestAttackANumberThatIsNoGuestsIsNotReported(t *testing.T) {
	t.Parallel()
	for reported, want := range map[uint32]uint32{0: 0, 1: 0, 2: 0, 3: 3, 1<<32 - 2: 1<<32 - 2, 1<<32 - 1: 0} {
		require.Equal(t, want, State{Phase: Running, VSOCKCID: reported}.Sanitized().VSOCKCID, reported)
	}
}

func TestWhatDoesNotBelongToAPhaseIsDropped(t *testing.T) {
	t.Parallel()
	s := State{Phase: "Sleeping", Generation: -1, Pause: &Pause{Cause: PausedByUser}, End: &End{Reason: Shutdown}}
	require.Equal(t, State{Phase: Starting}, s.Sanitized(), "an unknown phase is a guest that does not run yet")
}

func TestAVersionIsOneWord(t *testing.T) {
	t.Parallel()
	for reported, want := range map[string]string{"": "", "7.2.22": "7.2.22", "107.0.1": "107.0.1", "7 2": "", "7.2\n": "", strings.Repeat("7", 64): ""} {
		s := State{Phase: Running, Agent: &Agent{Version: reported}}.Sanitized()
		require.Equal(t, &Agent{Version: want}, s.Agent, "%q", reported)
	}
}

func TestAttackTheStatusByTheInterfacesOfAGuest(t *testing.T) {
	t.Parallel()
	odd := Interface{Name: "a\x1b[2J\n", MAC: "02:00:00:00:00:0A", Addresses: []string{"10.0.0.1", "not an address", "fe80::1%eth0", strings.Repeat("1", 1<<20)}}
	got := State{Phase: Running, Interfaces: []Interface{
		odd, {Name: strings.Repeat("n", 1000), MAC: "02:00:00:00:00:0b"}, {Name: "eth1", MAC: strings.Repeat("0", 1<<20)}, {Name: "eth2"},
	}}.Sanitized().Interfaces
	require.Equal(t, []Interface{{Name: "a [2J ", MAC: "02:00:00:00:00:0a", Addresses: []string{"10.0.0.1"}}, {MAC: "02:00:00:00:00:0b"}}, got)

	odd.Addresses = nil
	for range 100 {
		odd.Addresses = append(odd.Addresses, "10.0.0.1")
	}
	var many []Interface
	for range 1000 {
		many = append(many, odd)
	}
	got = State{Phase: Running, Interfaces: many}.Sanitized().Interfaces
	require.Len(t, got, maxInterfaces)
	require.Len(t, got[0].Addresses, maxAddresses)
}

func TestAttackTheStatusByTheLinksOfALauncher(t *testing.T) {
	t.Parallel()
	all := []Link{{Name: "default", State: "sideways"}, {Name: "lan", State: ""}}
	for range 2 * maxLinks {
		all = append(all, Link{Name: "more", State: "down"})
	}
	got := State{Phase: Running, Links: all}.Sanitized().Links
	require.Len(t, got, maxLinks)
	require.Equal(t, Link{Name: "more", State: "down"}, got[0])
}

func FuzzSanitize(f *testing.F) {
	f.Add("Paused", "IOError", "root", "full")
	f.Add("Ended", "\x00", "../..", "\xff\xfe")
	f.Fuzz(func(t *testing.T, phase, reason, name, message string) {
		s := State{
			Phase: Phase(phase), Machine: name, Finding: &vmi.Finding{Reason: reason, Message: message},
			NotBooted: &vmi.Finding{Reason: reason, Message: message}, Reboots: int64(len(message)) << 40,
			Pause: &Pause{Cause: PauseCause(reason), Volume: name, Message: message},
			End:   &End{Reason: EndReason(reason), Message: message},
			Disks: []Disk{{Name: name, Target: reason}}, Agent: &Agent{Version: name},
			Credentials: &Credentials{Failure: message},
		}.Sanitized()
		require.LessOrEqual(t, len(s.Credentials.Failure), maxMessage)
		require.Equal(t, s, s.Sanitized(), "it is stable")
		require.LessOrEqual(t, len(s.Finding.Message), maxMessage)
		require.NotContains(t, s.Machine, "/")
	})
}

func TestAMigrationOfALauncherIsPassedOnIfItsWordsAreKnown(t *testing.T) {
	failed := Migration{UID: migrationUID, Stage: MigrationStays, Mode: vmi.MigrationPreCopy, Finding: &vmi.Finding{Reason: "Failed", Message: "lost"}}
	require.Equal(t, &failed, State{Phase: Running, Migration: &failed}.Sanitized().Migration)
	for name, m := range map[string]Migration{
		"a stage": {UID: migrationUID, Stage: "Elsewhere"}, "no UID": {Stage: MigrationSends}, "a UID that is none": {UID: "a b", Stage: MigrationSends},
	} {
		require.Nil(t, State{Phase: Running, Migration: &m}.Sanitized().Migration, name)
	}
	m := State{Phase: Running, Migration: &Migration{UID: migrationUID, Stage: MigrationSends, Mode: "Fast", Finding: &vmi.Finding{Reason: "No Word"}}}.Sanitized().Migration
	require.Equal(t, &Migration{UID: migrationUID, Stage: MigrationSends, Finding: &vmi.Finding{Reason: UnknownReason}}, m)
}

func TestCallsAndStreamsOfMigrationsAreNoUsers(t *testing.T) {
	for _, p := range []Path{{Call: CallMigrationAccept}, {Call: CallMigrationAbort}, {Stream: StreamMigrationDisks}} {
		require.True(t, p.IsMigration(), p)
	}
	for _, p := range []Path{{}, {Call: CallPause}, {Stream: StreamConsole}, {Call: CallDestroy}} {
		require.False(t, p.IsMigration(), p)
	}
}
