package handler

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestALauncherReportsNoMoreThanAStatusHolds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1<<18)
	disks := make([]protocol.Disk, 1<<14)
	for i := range disks {
		disks[i] = protocol.Disk{Name: "root", Target: "vda", SizeBytes: -1}
	}
	s := Sanitize(protocol.State{
		Reboots: 1<<63 - 1, Panics: -1, NotBooted: &vmi.Finding{Reason: "No Word", Message: long},
		Generation: 1<<63 - 1, Phase: protocol.Ended, Machine: long,
		VSOCKCID: 1<<32 - 1,
		Disks:    append([]protocol.Disk{{Name: long}, {Name: "root", Target: long}, {Name: "root"}, {Name: "a b", Target: "vda"}}, disks...),
		Finding:  &vmi.Finding{Reason: "No Word", Message: long},
		Agent:    &protocol.Agent{Version: long},
		End:      &protocol.End{Reason: protocol.EndReason(long), Message: long},
	})
	require.Equal(t, int64(maxGeneration), s.Generation)
	require.Equal(t, int64(maxCount), s.Reboots)
	require.Zero(t, s.Panics)
	require.Equal(t, unknownReason, s.NotBooted.Reason)
	require.Empty(t, s.Machine)
	require.Zero(t, s.VSOCKCID)
	require.Equal(t, &protocol.Agent{}, s.Agent)
	require.Len(t, s.Disks, maxDisks)
	require.Equal(t, protocol.Disk{Name: "root", Target: "vda"}, s.Disks[0])
	require.Equal(t, unknownReason, s.Finding.Reason)
	require.Equal(t, protocol.EndReason(unknownReason), s.End.Reason)
	p := Sanitize(protocol.State{Phase: protocol.Paused, Pause: &protocol.Pause{Cause: "No Word", Volume: long, Message: long}})
	require.Equal(t, protocol.PauseCause(unknownReason), p.Pause.Cause)
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

func TestDisksThatTheSpecDoesNotHaveAreNotReported(t *testing.T) {
	t.Parallel()
	v := instance(vmi.Scheduled)
	v.Spec.Volumes = []vmi.Volume{{Name: "root"}, {Name: "data"}}
	s := Sanitize(protocol.State{Phase: protocol.Running, Disks: []protocol.Disk{
		{Name: "invented", Target: "vdz"}, {Name: "root", Target: "vda", SizeBytes: 1<<63 - 1}, {Name: "root", Target: "vdb", SizeBytes: 1},
		{Name: "data", Target: strings.Repeat("v", maxTarget+1)}, {Name: "data", Target: "vdc", SizeBytes: -1},
	}})
	info := &vmi.PersistentVolumeClaimInfo{ClaimName: "data"}
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "data", PersistentVolumeClaimInfo: info}, {Name: "gone", PersistentVolumeClaimInfo: info}}
	require.Equal(t, []vmi.VolumeStatus{{Name: "root", Target: "vda", Size: maxSize}, {Name: "data", Target: "vdc", PersistentVolumeClaimInfo: info}}, volumes(v, s.Disks))
}

func TestAStateThatFitsIsKept(t *testing.T) {
	t.Parallel()
	kept := map[string]bool{}
	for name, s := range map[string]protocol.State{
		"a guest that runs": {
			Generation: 3, Phase: protocol.Running, Emulated: true, Machine: "pc-q35-7.2", VSOCKCID: 3, Agent: &protocol.Agent{Version: "7.2.22"},
			Finding: &vmi.Finding{Reason: "AttachFailed", Message: "no such file"},
			Disks:   []protocol.Disk{{Name: "root.disk-1", Target: "vda", SizeBytes: 5}}, Reboots: 3, Panics: 1, Frozen: true,
			NotBooted: &vmi.Finding{Reason: protocol.ReasonNothingRead, Message: "nothing was read"}, Credentials: &protocol.Credentials{Failure: "no such user"},
			KernelBoot: &vmi.KernelBootStatus{KernelInfo: &vmi.BootFileInfo{Checksum: 7}, InitrdInfo: &vmi.BootFileInfo{Checksum: 8}},
			Interfaces: []protocol.Interface{{Name: "eth0", MAC: "02:29:ef:a9:cb:99", Addresses: []string{"10.0.2.2", "fd10:0:2::2"}}},
			Links:      []protocol.Link{{Name: "default", State: "up"}, {Name: "lan", State: "down"}},
		},
		"a guest that is paused": {Phase: protocol.Paused, Pause: &protocol.Pause{Cause: protocol.PausedByIOError, Volume: "root", Message: "full"}},
		"a guest that has ended": {Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown, Message: "the guest powered off"}},
		"nothing":                {Phase: protocol.Waiting},
	} {
		require.Equal(t, s, Sanitize(s), name)
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
		require.Equal(t, want, Sanitize(protocol.State{Phase: protocol.Running, VSOCKCID: reported}).VSOCKCID, reported)
	}
}

func TestWhatDoesNotBelongToAPhaseIsDropped(t *testing.T) {
	t.Parallel()
	s := protocol.State{Phase: "Sleeping", Generation: -1, Pause: &protocol.Pause{Cause: protocol.PausedByUser}, End: &protocol.End{Reason: protocol.Shutdown}}
	require.Equal(t, protocol.State{Phase: protocol.Starting}, Sanitize(s), "an unknown phase is a guest that does not run yet")
}

func TestAVersionIsOneWord(t *testing.T) {
	t.Parallel()
	for reported, want := range map[string]string{"": "", "7.2.22": "7.2.22", "107.0.1": "107.0.1", "7 2": "", "7.2\n": "", strings.Repeat("7", 64): ""} {
		s := Sanitize(protocol.State{Phase: protocol.Running, Agent: &protocol.Agent{Version: reported}})
		require.Equal(t, &protocol.Agent{Version: want}, s.Agent, "%q", reported)
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("Paused", "IOError", "root", "full")
	f.Add("Ended", "\x00", "../..", "\xff\xfe")
	f.Fuzz(func(t *testing.T, phase, reason, name, message string) {
		s := Sanitize(protocol.State{
			Phase: protocol.Phase(phase), Machine: name, Finding: &vmi.Finding{Reason: reason, Message: message},
			NotBooted: &vmi.Finding{Reason: reason, Message: message}, Reboots: int64(len(message)) << 40,
			Pause: &protocol.Pause{Cause: protocol.PauseCause(reason), Volume: name, Message: message},
			End:   &protocol.End{Reason: protocol.EndReason(reason), Message: message},
			Disks: []protocol.Disk{{Name: name, Target: reason}}, Agent: &protocol.Agent{Version: name},
			Credentials: &protocol.Credentials{Failure: message},
		})
		require.LessOrEqual(t, len(s.Credentials.Failure), maxMessage)
		require.Equal(t, s, Sanitize(s), "it is stable")
		require.LessOrEqual(t, len(s.Finding.Message), maxMessage)
		require.NotContains(t, s.Machine, "/")
	})
}
