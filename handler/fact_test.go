package handler

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// facts are what launchers report in each field of a State, one field each, in this phase.
var facts = []struct {
	in   protocol.Phase
	says func(*protocol.State)
}{
	{protocol.Running, func(s *protocol.State) { s.Phase = protocol.Paused }},
	{protocol.Running, func(s *protocol.State) { s.Finding = &vmi.Finding{Reason: "Late", Message: "later"} }},
	{protocol.Paused, func(s *protocol.State) { s.Pause = &protocol.Pause{Cause: protocol.PausedByIOError} }},
	{protocol.Ended, func(s *protocol.State) { s.End = &protocol.End{Reason: protocol.Shutdown} }},
	{protocol.Running, func(s *protocol.State) { s.Emulated = true }},
	{protocol.Running, func(s *protocol.State) { s.Machine = "pc-q35-8.0" }},
	{protocol.Running, func(s *protocol.State) { s.VSOCKCID = 5 }},
	{protocol.Running, func(s *protocol.State) { s.Disks = []protocol.Disk{{Name: "root", Target: "vda", SizeBytes: 1}} }},
	{protocol.Running, func(s *protocol.State) {
		s.KernelBoot = &vmi.KernelBootStatus{KernelInfo: &vmi.BootFileInfo{Checksum: 7}}
	}},
	{protocol.Running, func(s *protocol.State) { s.Agent = &protocol.Agent{Version: "9.0"} }},
	{protocol.Running, func(s *protocol.State) {
		s.Interfaces = []protocol.Interface{{Name: "eth5", MAC: "02:00:00:00:00:05", Addresses: []string{"192.0.2.5"}}}
	}},
	{protocol.Running, func(s *protocol.State) { s.Links = []protocol.Link{{Name: "default", State: "down"}} }},
	{protocol.Running, func(s *protocol.State) { s.Credentials = &protocol.Credentials{Failure: "no such user"} }},
	{protocol.Running, func(s *protocol.State) { s.Reboots = 2 }},
	{protocol.Running, func(s *protocol.State) { s.Panics = 2 }},
	{protocol.Running, func(s *protocol.State) { s.Frozen = true }},
	{protocol.Running, func(s *protocol.State) {
		s.NotBooted = &vmi.Finding{Reason: protocol.ReasonNothingRead, Message: "nothing"}
	}},
	{protocol.Running, func(s *protocol.State) { s.Movable = false }},
	{protocol.Running, func(s *protocol.State) {
		s.Migration = &protocol.Migration{UID: "m1", Stage: protocol.MigrationSends}
	}},
}

// unreported are the fields that are in no status, and why.
var unreported = map[string]string{"Generation": "it is that of the Desired: what is put again follows from it"}

// A fact that the handler does not read is reported for nothing.
func TestEachFactThatALauncherReportsIsInTheStatus(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseScheduled, vmitest.WithMasquerade("default"), leaving)
	v.Spec.Domain.Devices.AutoattachVSOCK = new(true)
	v.Spec.Domain.Firmware = &vmi.Firmware{KernelBoot: &vmi.KernelBoot{Container: &vmi.KernelBootContainer{Image: "example/kernel:1", KernelPath: "/kernel"}}}
	status := func(s *protocol.State) *vmi.VirtualMachineInstanceStatus {
		with := session(v, s)
		with.Network = &Network{Interfaces: []vmi.InterfaceStatus{{Name: "default", LinkState: "up"}}, Attachments: bound.Attachments}
		return Decide(observed(v, with)).Status
	}
	of := reflect.TypeFor[protocol.State]()
	said := map[string]bool{}
	for _, fact := range facts {
		before, after := state(fact.in), state(fact.in)
		fact.says(after)
		for i := range of.NumField() {
			if !reflect.DeepEqual(reflect.ValueOf(*before).Field(i).Interface(), reflect.ValueOf(*after).Field(i).Interface()) {
				said[of.Field(i).Name] = true
				require.NotEqual(t, status(before), status(after), "%s: the status is the same without it: read it in status.go", of.Field(i).Name)
			}
		}
	}
	for i := range of.NumField() {
		name := of.Field(i).Name
		require.True(t, said[name] != (unreported[name] != ""), "%s: say in this test what a launcher reports in it, and read it in status.go", name)
	}
}
