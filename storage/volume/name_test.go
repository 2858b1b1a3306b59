package volume

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podvisor/podvisor/vmi"
)

// own are names as a pod has them.
var own = Names{
	Volumes:    []string{"sockets", "private", "ephemeral-disks", "tmp", programVolume, copiesVolume},
	Containers: []string{"compute", installContainer},
}

func named(all ...string) []vmi.Volume {
	var out []vmi.Volume
	for _, n := range all {
		out = append(out, vmi.Volume{Name: n})
	}
	return out
}

func TestVolumesKeepTheirNamesInThePod(t *testing.T) {
	t.Parallel()
	got := podNames(named("root", "volume-private", "compute", "install"), own)
	require.Equal(t, map[string]PodNames{
		"root":           {"root", "networkdata-root", "volumeroot", "virtiofs-root"},
		"volume-private": {"volume-private", "networkdata-volume-private", "volumevolume-private", "virtiofs-volume-private"},
		"compute":        {"compute", "networkdata-compute", "volumecompute", "virtiofs-compute"},
		"install":        {"install", "networkdata-install", "volumeinstall", "virtiofs-install"},
	}, got)
}

func TestAVolumeWithAReservedNameGetsAFreeOne(t *testing.T) {
	t.Parallel()
	require.Equal(t, "volume-private", podNames(named("private"), own)["private"].Volume)
	got := podNames(named("private", "volume-private"), own)
	require.Equal(t, "volume-private", got["volume-private"].Volume, "what is not reserved is kept")
	first := got["private"].Volume
	require.Regexp(t, `^volume-private-[a-v0-9]{8}$`, first)
	got = podNames(named("private", "volume-private", first), own)
	require.Equal(t, first, got[first].Volume)
	require.Regexp(t, `^volume-private-[a-v0-9]{8}$`, got["private"].Volume)
	require.NotEqual(t, first, got["private"].Volume)
}

func TestALongNameGetsAFreeOne(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("v", 63)
	got := podNames(named(long), own)[long]
	require.Equal(t, long, got.Volume)
	require.Len(t, got.Container, 63)
	// The pod is full of names that are like the substitute.
	reserved := Names{Containers: []string{substitute(long, 0), substitute(long, 1)}}
	require.Equal(t, substitute(long, 2), podNames(named(long), reserved)[long].Container)
}

// check fails if names in the pod collide, are illegal, or depend on the order.
func check(t *testing.T, all []string) {
	t.Helper()
	got := podNames(named(all...), own)
	volumes, containers := map[string]string{}, map[string]string{}
	for _, n := range own.Volumes {
		volumes[n] = "the pod's own"
	}
	for _, n := range own.Containers {
		containers[n] = "the pod's own"
	}
	for _, n := range all {
		in := got[n]
		require.Empty(t, volumes[in.Volume], "%s and %s are both the volume %s", n, volumes[in.Volume], in.Volume)
		require.Empty(t, containers[in.Container], "%s and %s are both the container %s", n, containers[in.Container], in.Container)
		volumes[in.Volume], containers[in.Container] = n, n
		require.Empty(t, volumes[in.NetworkData], "%s and %s are both the volume %s", n, volumes[in.NetworkData], in.NetworkData)
		volumes[in.NetworkData] = n
		require.Empty(t, validation.IsDNS1123Label(in.NetworkData))
		require.Empty(t, validation.IsDNS1123Label(in.Volume))
		require.Empty(t, validation.IsDNS1123Label(in.Container))
		if !slices.Contains(own.Volumes, n) {
			require.Equal(t, n, in.Volume)
		}
	}
	back := slices.Clone(all)
	slices.Reverse(back)
	require.Equal(t, got, podNames(named(back...), own), "the order does not matter")
}

func TestNamesInThePodNeverCollide(t *testing.T) {
	t.Parallel()
	// Names that are likely to collide, and the substitutes of each, and theirs.
	pool := slices.Concat(own.Volumes, own.Containers, []string{"a", "volume", "root", strings.Repeat("v", 57), strings.Repeat("v", 58), strings.Repeat("v", 63), strings.Repeat("v", 62) + "w"})
	for range 2 {
		for _, n := range slices.Clone(pool) {
			for _, more := range []string{"volume" + n, "volume-" + n, "networkdata-" + n, substitute(n, 0), substitute(n, 1), strings.TrimPrefix(substitute(n, 0), "volume-")} {
				if len(more) <= 63 && len(validation.IsDNS1123Label(more)) == 0 && !slices.Contains(pool, more) {
					pool = append(pool, more)
				}
			}
		}
	}
	require.Greater(t, len(pool), 100)
	check(t, pool)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var some []string
		for _, i := range r.Perm(len(pool))[:1+r.IntN(12)] {
			some = append(some, pool[i])
		}
		check(t, some)
	}
}

func FuzzPodNames(f *testing.F) {
	f.Add("private", "volume-private", "compute")
	f.Add(strings.Repeat("v", 63), substitute(strings.Repeat("v", 63), 0), "install")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var all []string
		for _, n := range []string{a, b, c, "private", "tmp"} {
			if len(validation.IsDNS1123Label(n)) == 0 && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
		check(t, all)
	})
}
