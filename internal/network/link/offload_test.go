package link

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
)

// A namespace that an earlier release bound has neither the filter nor the settings. The
// next handler adds them while the guest runs.
func TestWhatAnEarlierReleaseBoundIsProtectedToo(t *testing.T) {
	for name, b := range bindings {
		t.Run(name, func(t *testing.T) {
			v := networktest.Instance(b...)
			pod := podOf(t, v, networktest.DualPod)
			cfg := plan(t, pod, v)
			require.NoError(t, Apply(t.Context(), pod, cfg))
			want := string(text(t, pod, cfg))
			tap := networktest.OpenTap(t, pod, "tap0")
			for _, l := range cfg.Links {
				if l.CheckOffloads {
					networktest.Run(t, pod, testenv.Program(t, "tc"), "qdisc", "del", "dev", l.Name, "clsact")
				}
				if l.ForwardGroups {
					networktest.IP(t, pod, "link set "+l.Name+" type bridge group_fwd_mask 0")
				}
				for _, s := range l.Sysctls {
					if !strings.HasSuffix(s.Key, "disable_ipv6") && !strings.HasSuffix(s.Key, "accept_ra") && !strings.HasSuffix(s.Key, "autoconf") {
						continue
					}
					networktest.In(t, pod, func() {
						require.NoError(t, os.WriteFile("/proc/sys/"+s.Key, []byte(map[string]string{"0": "1", "1": "0"}[s.Value]), 0))
					})
				}
			}
			require.NotEqual(t, want, string(text(t, pod, cfg)))
			require.NoError(t, Apply(t.Context(), pod, plan(t, pod, v)))
			require.Equal(t, want, string(text(t, pod, cfg)))
			require.Zero(t, some(t, pod, cfg, 0), "no step is left")
			_, err := tap.Write(make([]byte, networktest.HeaderLength+60))
			require.NoError(t, err, "the device is still open")
		})
	}
}

func TestTheKernelSaysWhereAPacketHasItsMembers(t *testing.T) {
	if _, err := os.Stat(kernelTypes); err != nil {
		testenv.Root(t)
	}
	p, err := findPlaces()
	require.NoError(t, err)
	// They are in a union of two numbers of 16 bits.
	require.Equal(t, p.start.Bit+16, p.offset.Bit)
	require.Zero(t, p.mac.Bit%8)
	b, err := os.ReadFile(kernelTypes)
	require.NoError(t, err)
	types, err := parseTypes(b)
	require.NoError(t, err)
	_, err = types.member("sk_buff", "nothing")
	require.EqualError(t, err, "the kernel's struct sk_buff has no member nothing")
	_, err = parseTypes(b[:len(b)/2])
	require.ErrorIs(t, err, errTypes)
}

func TestAProgramThatTheKernelRefusesIsAnError(t *testing.T) {
	testenv.Root(t)
	_, err := load(program{{op: finish}}) // it returns nothing
	require.ErrorIs(t, err, unix.EACCES)
}

func FuzzParseTypes(f *testing.F) {
	// A struct sk_buff with a union without a name that has a bit field.
	header := []byte{0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0, 48, 0, 0, 0, 11, 0, 0, 0}
	parts := []byte{
		1, 0, 0, 0, 1, 0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0,
		0, 0, 0, 0, 1, 0, 0, 0x85, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 2,
	}
	whole := append(append(header, parts...), "\x00sk_buff\x00a\x00"...)
	types, err := parseTypes(whole)
	require.NoError(f, err)
	m, err := types.member("sk_buff", "a")
	require.NoError(f, err)
	require.Equal(f, member{11}, m)
	f.Add(whole)
	f.Add(append([]byte{}, header...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if types, err := parseTypes(b); err == nil {
			_, _ = types.member("sk_buff", "a")
		}
	})
}
