package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestErrorsHaveClasses(t *testing.T) {
	for _, tt := range []struct {
		code               golibvirt.ErrorNumber
		notFound, terminal bool
	}{
		{golibvirt.ErrNoDomain, true, false},
		{golibvirt.ErrXMLError, false, true},
		{golibvirt.ErrConfigUnsupported, false, true},
		{golibvirt.ErrInternalError, false, false},
		{golibvirt.ErrOperationFailed, false, false},
	} {
		err := fmt.Errorf("again: %w", failure("create", "ns_vm", golibvirt.Error{Code: uint32(tt.code), Message: "why"}))
		require.Equal(t, tt.notFound, errors.Is(err, ErrNotFound), tt.code)
		require.Equal(t, tt.terminal, errors.Is(err, vmi.ErrInvalid), tt.code)
		require.EqualError(t, err, "again: create domain ns_vm: why")
	}
	require.NoError(t, failure("create", "ns_vm", nil))
	require.ErrorIs(t, failure("create", "ns_vm", context.DeadlineExceeded), context.DeadlineExceeded)
}

func TestAnErrorSaysTheSameEachTime(t *testing.T) {
	const line = "2026-11-21T20:13:36.652713Z qemu-system-x86_64: no memory\n2026-11-21T20:13:36.7Z qemu-system-x86_64: bye"
	for _, said := range []string{"process exited while connecting to monitor", "qemu unexpectedly closed the monitor", "QEMU unexpectedly closed the monitor (vm='ns_vm')", "process exited while connecting to monitor (vm='ns_vm')"} {
		err := failure("create", "ns_vm", golibvirt.Error{Message: "internal error: " + said + ": " + line})
		require.EqualError(t, err, "create domain ns_vm: QEMU ended: qemu-system-x86_64: no memory\nqemu-system-x86_64: bye")
	}
}

func TestEventsAreTranslated(t *testing.T) {
	for _, tt := range []struct {
		event  golibvirt.DomainEventType
		detail int32
		want   EventKind
	}{
		{golibvirt.DomainEventStarted, int32(golibvirt.DomainEventStartedBooted), Started},
		{golibvirt.DomainEventSuspended, int32(golibvirt.DomainEventSuspendedIoerror), Suspended},
		{golibvirt.DomainEventResumed, int32(golibvirt.DomainEventResumedUnpaused), Resumed},
		{golibvirt.DomainEventStopped, int32(golibvirt.DomainEventStoppedShutdown), PoweredOff},
		{golibvirt.DomainEventStopped, int32(golibvirt.DomainEventStoppedDestroyed), Destroyed},
		{golibvirt.DomainEventStopped, int32(golibvirt.DomainEventStoppedMigrated), MovedAway},
		{golibvirt.DomainEventStopped, int32(golibvirt.DomainEventStoppedFailed), Failed},
		{golibvirt.DomainEventStopped, int32(golibvirt.DomainEventStoppedCrashed), Failed},
		{golibvirt.DomainEventCrashed, int32(golibvirt.DomainEventCrashedPanicked), Panicked},
		{golibvirt.DomainEventCrashed, int32(golibvirt.DomainEventCrashedCrashloaded), Panicked},
		{golibvirt.DomainEventShutdown, int32(golibvirt.DomainEventShutdownGuest), ShutDown},
		{golibvirt.DomainEventShutdown, int32(golibvirt.DomainEventShutdownFinished), ""},
		{golibvirt.DomainEventShutdown, int32(golibvirt.DomainEventShutdownHost), Interrupted},
		{golibvirt.DomainEventDefined, 0, ""},
	} {
		require.Equal(t, tt.want, lifecycle(tt.event, tt.detail).Kind, "%v %d", tt.event, tt.detail)
	}
}

func TestThePauseOfAnEventHasACause(t *testing.T) {
	for detail, want := range map[golibvirt.DomainEventSuspendedDetailType]protocol.PauseCause{
		golibvirt.DomainEventSuspendedPaused:   protocol.PausedByUser,
		golibvirt.DomainEventSuspendedIoerror:  protocol.PausedByIOError,
		golibvirt.DomainEventSuspendedWatchdog: protocol.PausedByWatchdog,
		golibvirt.DomainEventSuspendedMigrated: protocol.PausedByMigration,
		golibvirt.DomainEventSuspendedAPIError: protocol.PausedByUnknown,
	} {
		require.Equal(t, Event{Kind: Suspended, Pause: want}, lifecycle(golibvirt.DomainEventSuspended, int32(detail)), detail)
	}
	require.Empty(t, lifecycle(golibvirt.DomainEventResumed, int32(golibvirt.DomainEventSuspendedIoerror)).Pause)
}

func TestThePauseOfAStatusHasACause(t *testing.T) {
	for reason, want := range map[golibvirt.DomainPausedReason]protocol.PauseCause{
		golibvirt.DomainPausedUser:       protocol.PausedByUser,
		golibvirt.DomainPausedIoerror:    protocol.PausedByIOError,
		golibvirt.DomainPausedWatchdog:   protocol.PausedByWatchdog,
		golibvirt.DomainPausedMigration:  protocol.PausedByMigration,
		golibvirt.DomainPausedCrashed:    protocol.PausedByPanic,
		golibvirt.DomainPausedStartingUp: protocol.PausedByUnknown,
	} {
		require.Equal(t, Status{Paused, want}, status(golibvirt.DomainPaused, int32(reason)), reason)
	}
	require.Equal(t, Status{State: Running}, status(golibvirt.DomainRunning, int32(golibvirt.DomainPausedIoerror)))
	require.Equal(t, Status{Paused, protocol.PausedByUnknown}, status(golibvirt.DomainPmsuspended, 1))
}

func TestWithoutADaemonNothingIsReached(t *testing.T) {
	_, err := Dial(t.Context(), filepath.Join(t.TempDir(), "libvirt-sock"))
	require.ErrorIs(t, err, syscall.ENOENT)
}

func TestACallToADaemonThatDoesNotAnswerEndsWithItsContext(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "libvirt-sock")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it took too long")
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
		}
		cancel(why)
		<-t.Context().Done()
	}()
	_, err = Dial(ctx, socket)
	require.ErrorIs(t, err, why)
}

func ExampleDial() {
	ctx := context.Background()
	c, err := Dial(ctx, "/run/user/107/libvirt/libvirt-sock")
	if err != nil {
		fmt.Println("no daemon")
		return
	}
	defer c.Close()
	status, err := c.Status(ctx, "default_hello")
	fmt.Println(status.State, err)
	// Output: no daemon
}
