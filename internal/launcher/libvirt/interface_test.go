package libvirt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/network/networktest"
)

// The three kinds of interfaces that a domain can have beside the usual one: with
// several queues, one that the firmware boots from, and one whose cable is not
// plugged in.
func TestInterfacesWithQueuesABootOrderAndNoCable(t *testing.T) {
	ns := networktest.Namespace(t)
	networktest.IP(t, ns, "tuntap add fast mode tap multi_queue user 65534")
	networktest.IP(t, ns, "tuntap add slow mode tap user 65534")
	d := newDaemonIn(t, ns)
	nic := func(tap, more string) string {
		return fmt.Sprintf(`<interface type="ethernet"><target dev="%s" managed="no"/><model type="virtio-non-transitional"/><alias name="ua-net_%[1]s"/>%s</interface>`, tap, more)
	}
	g := d.start(nic("fast", `<driver queues="3"/><boot order="2"/>`) + nic("slow", `<link state="down"/><rom enabled="no"/>`))
	all := g.described().Devices.Interfaces
	require.EqualValues(t, 3, all[0].Driver.Queues)
	require.EqualValues(t, 2, all[0].Boot.Order)
	require.Nil(t, all[0].ROM, "it has the boot ROM of its card")
	require.Equal(t, "down", all[1].Link.State)

	plugged := &libvirtxml.DomainInterface{}
	require.NoError(t, plugged.Unmarshal(marshal(t, &all[1])))
	plugged.Link.State = "up"
	require.NoError(t, d.Update(t.Context(), name, plugged))
	require.Equal(t, "up", g.described().Devices.Interfaces[1].Link.State)
	require.Equal(t, 1, strings.Count(read(t, g.dir+"/serial.log"), "test guest is up"), "the guest runs on")
}

func marshal(t *testing.T, d interface{ Marshal() (string, error) }) string {
	t.Helper()
	s, err := d.Marshal()
	require.NoError(t, err)
	return s
}
