package protocol

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

var (
	instance = &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: "6f1c2a3e-9a43-4f0e-8d2b-0c54a7b1e9d2"}}
	disks    = []Disk{{Name: "root", Target: "vda", SizeBytes: 1 << 20}, {Name: "data", Target: "vdb"}}
)

const migrationUID = "7a90c1d2-0000-4000-8000-1d0e5f6a7b8c"

// placed is an instance with the place of a disk.
func placed() *vmi.VirtualMachineInstance {
	v := instance.DeepCopy()
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "data", Target: "vdb"}}
	return v
}

// The files are the wire format. A change to one that is there is a change that
// the release before cannot read; a new field is a new file.
func TestWhatIsSentHasItsForm(t *testing.T) {
	for name, value := range map[string]any{
		"desired": Desired{Generation: 4, Instance: instance, Settings: config.Launcher{Verbosity: 4}, Interfaces: []network.Attachment{{
			Name: "default", Tap: "tap0", MAC: "02:00:00:00:00:01", MTU: 1450, DHCP: &network.Offer{
				Link: "k6t-eth0", MAC: "02:00:00:00:00:01", Address: netip.MustParsePrefix("10.0.2.2/24"),
				Server: netip.MustParseAddr("10.0.2.1"), Router: netip.MustParseAddr("10.0.2.1"), MTU: 1450, Hostname: "hello",
			},
		}}},
		"desired-stop":      Desired{Generation: 5, Instance: instance, Stop: &Stop{GracePeriodSeconds: 30}},
		"desired-older":     Desired{Instance: instance},
		"desired-target":    Desired{Generation: 7, Instance: instance, Role: vmi.RoleTarget},
		"desired-places":    Desired{Generation: 6, Instance: placed()},
		"state-waiting":     State{Phase: Waiting},
		"state-starting":    State{Generation: 1, Phase: Starting, Finding: &vmi.Finding{Reason: "StartFailed", Message: "create domain default_hello: busy"}},
		"state-running":     State{Generation: 4, Phase: Running, Emulated: true, Machine: "pc-q35-7.2", Disks: disks, Agent: &Agent{Version: "7.2.0"}},
		"state-interfaces":  State{Generation: 4, Phase: Running, Agent: &Agent{Version: "7.2.0"}, Interfaces: []Interface{{Name: "eth0", MAC: "02:29:ef:a9:cb:99", Addresses: []string{"10.0.2.2", "fd10:0:2::2"}}}},
		"state-links":       State{Generation: 4, Phase: Running, Links: []Link{{Name: "default", State: "up"}, {Name: "lan", State: "down"}}},
		"state-paused":      State{Generation: 4, Phase: Paused, Pause: &Pause{Cause: PausedByUser}, Machine: "pc-q35-7.2", Disks: disks, Agent: &Agent{}},
		"state-io-error":    State{Generation: 4, Phase: Paused, Pause: &Pause{Cause: PausedByIOError, Volume: "data", Message: "volume data: no space left"}, Machine: "pc-q35-7.2", Disks: disks},
		"state-stopping":    State{Generation: 5, Phase: Stopping, Machine: "pc-q35-7.2", Disks: disks},
		"state-kernel-boot": State{Generation: 4, Phase: Running, Machine: "pc-q35-7.2", KernelBoot: &vmi.KernelBootStatus{KernelInfo: &vmi.BootFileInfo{Checksum: 4294967295}, InitrdInfo: &vmi.BootFileInfo{Checksum: 1}}},
		"state-vsock":       State{Generation: 4, Phase: Running, Machine: "pc-q35-7.2", VSOCKCID: 4294967294},
		"state-reboots":     State{Generation: 4, Phase: Running, Machine: "pc-q35-7.2", Disks: disks, Reboots: 3},
		"state-panics":      State{Generation: 4, Phase: Ended, End: &End{Reason: Crashed, Message: "the kernel of the guest panicked"}, Reboots: 1, Panics: 2},
		"state-not-booted":  State{Generation: 4, Phase: Running, Disks: disks, NotBooted: &vmi.Finding{Reason: ReasonNoBootableDevice, Message: "No bootable device."}},
		"state-frozen":      State{Generation: 4, Phase: Running, Agent: &Agent{Version: "7.2.0"}, Frozen: true},
		"state-credentials": State{Generation: 4, Phase: Running, Agent: &Agent{Version: "7.2.0"}, Credentials: &Credentials{}},
		"state-no-credentials": State{Generation: 4, Phase: Running, Agent: &Agent{Version: "7.2.0"}, Credentials: &Credentials{
			Failure: `secret "team": key bob, line 1 is no SSH public key`}},
		"state-terminated": State{Generation: 5, Phase: Ended, End: &End{Reason: Shutdown, Message: "the guest powered off", Terminated: true}},
		"state-moved":      State{Generation: 5, Phase: Ended, End: &End{Reason: MovedAway, Message: "the guest runs in another pod"}},
		"state-ended":      State{Generation: 5, Phase: Ended, End: &End{Reason: Killed, Message: "the grace period was over"}, Machine: "pc-q35-7.2", Disks: disks},
		"state-sent":       State{Generation: 4, Phase: Paused, Pause: &Pause{Cause: PausedByMigration}, Movable: true, Migration: &Migration{UID: migrationUID, Stage: MigrationSent, Mode: vmi.MigrationPreCopy}},
		"state-stays":      State{Generation: 4, Phase: Running, Movable: true, Migration: &Migration{UID: migrationUID, Stage: MigrationStays, Finding: &vmi.Finding{Reason: "Aborted", Message: "Live migration has been aborted"}}},
		"migration-accept": MigrationAccept{UID: migrationUID, Certificate: "sha256:00"},
		"migration-start": MigrationStart{UID: migrationUID, Node: "node2", Pod: "0d2f", Address: "10.244.1.2:8186", Certificate: "sha256:01", Settings: MigrationSettings{
			MiBPerSecond: 64, Connections: 4, AutoConverge: true, PostCopy: true, Disruption: true, SecondsPerGB: 150, ProgressSeconds: 150,
		}},
		"migration-prepare": MigrationPrepare{MigrationBegin{UID: migrationUID}, MigrationBegun{XML: "<domain/>", Cookie: []byte("cookie"), Disks: []MigrationDisk{
			{Name: "root", Target: "vda", SizeBytes: 1 << 20, Copied: true, Backing: &MigrationBacking{SizeBytes: 1 << 19, Hash: "sha256:02"}}, {Name: "data", Target: "vdb"},
		}}},
		"migration-finish": MigrationEnd{MigrationStep{UID: migrationUID, Cookie: []byte("cookie")}, true, vmi.MigrationPreCopy, "10.244.1.2:8186"},
		"refusal-stale":    vmi.Finding{Reason: ReasonStale, Message: "generation 3 is older than generation 4, which is in force"},
		"refusal-instance": vmi.Finding{Reason: ReasonOtherInstance, Message: "this launcher runs another VMI"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.MarshalIndent(value, "", "  ")
			require.NoError(t, err)
			golden.Equal(t, filepath.Join("testdata", name+".json"), append(b, '\n'))
		})
	}
}

func TestTheWordsOnTheWireAreThoseOfTheReleaseBefore(t *testing.T) {
	for word, want := range map[string]string{
		string(Waiting): "Waiting", string(Starting): "Starting", string(Running): "Running",
		string(Paused): "Paused", string(Stopping): "Stopping", string(Ended): "Ended",
		string(Shutdown): "Shutdown", string(Killed): "GracePeriodExceeded", string(Crashed): "Crashed",
		string(CannotStart): "CannotStart", string(Cancelled): "Cancelled", string(MovedAway): "MovedAway",
		ReasonMalformed: "Malformed", ReasonTooLarge: "TooLarge", ReasonOtherInstance: "OtherMachine",
		ReasonInvalid: "Invalid", ReasonUnavailable: "Unavailable",
		string(MigrationBegins): "Begins", string(MigrationSends): "Sends", string(MigrationSent): "Sent", string(MigrationStays): "Stays",
		string(MigrationReceives): "Receives", string(MigrationArrived): "Arrived", string(MigrationDiscarded): "Discarded", ReasonNotMoved: "NotMoved",
		ReasonNothingRead: "NothingReadFromDisks", ReasonNoBootableDevice: "NoBootableDevice",
	} {
		require.Equal(t, want, word)
	}
}

func TestAnEndIsASuccessIfItWasAskedForOrTheGuestsOwn(t *testing.T) {
	for reason, want := range map[EndReason]bool{Shutdown: true, Cancelled: false, MovedAway: false, Killed: false, Crashed: false, CannotStart: false, "": false} {
		require.Equal(t, want, reason.Succeeded(), reason)
		require.Equal(t, !want && reason != MovedAway, reason.Failed(), reason)
	}
}

// FuzzState reads what a launcher may send and writes it again.
func FuzzState(f *testing.F) {
	for _, name := range []string{"state-running", "state-io-error", "state-ended", "state-panics", "state-not-booted", "state-no-credentials", "desired"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s, again State
		if json.Unmarshal(b, &s) != nil {
			return
		}
		out, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(out, &again))
		require.Equal(t, s, again)
	})
}
