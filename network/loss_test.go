package network_test

import (
	"context"
	"encoding/binary"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/nclient6"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/vmi"
)

// losses are the first frames of each kind that are lost, and how many were. A guest that has
// an advertisement to all asks for none, so all of these are lost until what it asks for and is
// answered was.
type losses struct {
	mu    sync.Mutex
	lost  map[string]int
	kinds map[string]int
}

// firstOf loses the first frame of each of the kinds that [kindOf] names.
func firstOf(kinds ...string) *losses {
	l := &losses{lost: map[string]int{}, kinds: map[string]int{}}
	for _, k := range kinds {
		l.kinds[k]++
	}
	return l
}

func (l *losses) lose(frame []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := kindOf(frame)
	if k == toAll && l.waits() {
		return true
	}
	if l.lost[k] == l.kinds[k] {
		return false
	}
	l.lost[k]++
	return true
}

// waits says that frames besides advertisements to all are to be lost still.
func (l *losses) waits() bool {
	for k, n := range l.kinds {
		if k != toAll && l.lost[k] < n {
			return true
		}
	}
	return false
}

const toAll = "advertisement to all"

// all checks that every frame that was to be lost was lost.
func (l *losses) all(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Equal(t, l.kinds, l.lost)
}

// kindOf names the frame if it belongs to the configuration of a guest.
func kindOf(frame []byte) string {
	const ether, six, four = 14, 40, 20
	if len(frame) < ether+six+8 {
		return ""
	}
	p := frame[ether:]
	switch kind, port := binary.BigEndian.Uint16(frame[12:]), func(at int) uint16 { return binary.BigEndian.Uint16(p[at:]) }; {
	case kind == typeIPv6 && p[6] == icmp6 && p[six] == routers:
		return "solicitation"
	case kind == typeIPv6 && p[6] == icmp6 && p[six] == routing && p[24] == 0xff:
		return toAll
	case kind == typeIPv6 && p[6] == icmp6 && p[six] == routing:
		return "advertisement to the guest"
	case kind == typeIPv6 && p[6] == 17 && port(six+2) == client6:
		if m, err := dhcpv6.MessageFromBytes(p[six+8:]); err == nil {
			return m.Type().String()
		}
	case kind == typeIPv4 && p[9] == 17 && port(four+2) == client:
		if m, err := dhcpv4.FromBytes(p[four+8:]); err == nil {
			return m.MessageType().String()
		}
	}
	return ""
}

// The guest asks for routers once: what it gets is what the launcher repeats by itself.
func TestAGuestGetsItsRouteThoughWhatIsSentFirstIsLost(t *testing.T) {
	for _, tt := range []struct {
		name    string
		binding vmi.InterfaceBinding
		lost    []string
		// late says that the launcher answers only when the guest's question is lost. It
		// advertises for some seconds before it waits for another.
		late bool
	}{
		{"the answer behind masquerade", masquerade, []string{"advertisement to the guest"}, false},
		{"the answer and the first advertisement after it", masquerade, []string{"advertisement to the guest", toAll}, false},
		{"the answer on the network of the pod", bridge, []string{"advertisement to the guest", toAll}, false},
		{"its only question", bridge, []string{"solicitation"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod, _ := networktest.DualPod(t)
			cfg := bindLinks(t, pod, instance(tt.binding))
			if !tt.late {
				answer(t, pod, cfg)
			}
			l := firstOf(tt.lost...)
			guest := networktest.LossyGuest(t, pod, l.lose, cfg.Attachments[0])
			// It has no address from which it could have asked yet.
			networktest.In(t, guest, func() {
				require.NoError(t, os.WriteFile("/proc/sys/net/ipv6/conf/eth0/router_solicitations", []byte("1"), 0))
			})
			if tt.late {
				require.Eventually(t, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return !l.waits() }, time.Minute, 10*time.Millisecond)
				answer(t, pod, cfg)
			}
			require.Eventually(t, func() bool {
				return networktest.IP(t, guest, "-6 route show default") != ""
			}, time.Minute, 10*time.Millisecond)
			l.all(t)
		})
	}
}

func TestAGuestGetsItsAddressByDHCPThoughOfferAndAcknowledgementAreLost(t *testing.T) {
	for name, b := range map[string]vmi.InterfaceBinding{"masquerade": masquerade, "bridge": bridge} {
		t.Run(name, func(t *testing.T) {
			pod, _ := networktest.Pod(t)
			cfg := bind(t, pod, instance(b))
			l := firstOf("OFFER", "ACK")
			guest := networktest.LossyGuest(t, pod, l.lose, cfg.Attachments[0])
			require.Contains(t, networktest.Lease(t, guest, "eth0"), "ip='"+cfg.Attachments[0].DHCP.Address.Addr().String()+"'")
			l.all(t)
		})
	}
}

func TestAGuestGetsItsAddressByDHCPv6ThoughTheFirstAnswersAreLost(t *testing.T) {
	for name, b := range map[string]vmi.InterfaceBinding{"masquerade": masquerade, "bridge": bridge} {
		t.Run(name, func(t *testing.T) {
			pod, _ := networktest.DualPod(t)
			cfg := bind(t, pod, instance(b))
			own := cfg.Attachments[0].DHCP6.Address.Addr()
			l := firstOf("ADVERTISE", "REPLY")
			guest := networktest.LossyGuest(t, pod, l.lose, cfg.Attachments[0])
			reply := lease6(t, guest, "eth0")
			require.Equal(t, own.String(), reply.Options.OneIANA().Options.OneAddress().IPv6Addr.String())
			l.all(t)

			c := client6On(t, guest, "eth0")
			for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeConfirm, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind} {
				l.mu.Lock()
				l.kinds["REPLY"]++
				l.mu.Unlock()
				got := ask6(t, c, kind, reply)
				l.all(t)
				if kind == dhcpv6.MessageTypeConfirm {
					require.Equal(t, "Success", got.Options.Status().StatusCode.String())
					continue
				}
				require.Equal(t, own.String(), got.Options.OneIANA().Options.OneAddress().IPv6Addr.String())
			}
		})
	}
}

// ask6 sends the message of a client that has the address of a reply, as often as it must.
func ask6(t *testing.T, c *nclient6.Client, kind dhcpv6.MessageType, has *dhcpv6.Message) *dhcpv6.Message {
	t.Helper()
	m, err := dhcpv6.NewMessage(dhcpv6.WithClientID(has.Options.ClientID()), dhcpv6.WithOption(has.Options.OneIANA()))
	require.NoError(t, err)
	m.MessageType = kind
	if kind == dhcpv6.MessageTypeRenew {
		m.AddOption(dhcpv6.OptServerID(has.Options.ServerID()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := c.SendAndRead(ctx, nclient6.AllDHCPRelayAgentsAndServers, m, nclient6.IsMessageType(dhcpv6.MessageTypeReply))
	require.NoError(t, err, kind)
	return got
}
