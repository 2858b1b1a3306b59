package volume

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

// maxName is the longest name of a volume or container of a pod.
const maxName = 63

// containerPrefix begins the names of containers that belong to a volume.
const containerPrefix = "volume"

// Names are names of volumes and containers in a pod.
type Names struct{ Volumes, Containers []string }

// networkDataPrefix begins the names of volumes with cloud-init's network data.
const networkDataPrefix = "networkdata-"

// PodNames are the names in the pod that belong to one volume of the spec.
type PodNames struct {
	// Volume is the name of its volume, and NetworkData that of the volume with its
	// network data.
	Volume, NetworkData string
	// Container is the name of its container, and Filesystem that of the container
	// that serves it as a file system.
	Container, Filesystem string
}

// podNames returns the names in the pod for each volume, by its name in the spec.
// They depend on the set of names alone, not on their order, and differ from each
// other and from the reserved ones.
func podNames(volumes []vmi.Volume, reserved Names) map[string]PodNames {
	var all []string
	for _, v := range volumes {
		all = append(all, v.Name)
	}
	inVolumes := assign(all, "", reserved.Volumes)
	inNetworkData := assign(all, networkDataPrefix, slices.AppendSeq(slices.Clone(reserved.Volumes), maps.Values(inVolumes)))
	inContainers := assign(all, containerPrefix, reserved.Containers)
	asFilesystems := assign(all, filesystemPrefix, slices.AppendSeq(slices.Clone(reserved.Containers), maps.Values(inContainers)))
	out := map[string]PodNames{}
	for _, n := range all {
		out[n] = PodNames{Volume: inVolumes[n], NetworkData: inNetworkData[n], Container: inContainers[n], Filesystem: asFilesystems[n]}
	}
	return out
}

// assign returns a name in the pod for each of all: the prefix and the name, or,
// where that is reserved or too long, the first substitute that nothing has.
func assign(all []string, prefix string, reserved []string) map[string]string {
	out, taken := map[string]string{}, map[string]bool{}
	for _, r := range reserved {
		taken[r] = true
	}
	var rest []string
	for _, name := range all {
		if want := prefix + name; len(want) <= maxName && !slices.Contains(reserved, want) {
			out[name], taken[want] = want, true
			continue
		}
		rest = append(rest, name)
	}
	slices.Sort(rest)
	for _, name := range slices.Compact(rest) {
		try := 0
		for taken[substitute(name, try)] {
			try++
		}
		out[name] = substitute(name, try)
		taken[out[name]] = true
	}
	return out
}

// substitute is the name that is tried as number try where the usual one cannot
// be used.
func substitute(name string, try int) string {
	want := containerPrefix + "-" + name
	if try == 0 && len(want) <= maxName {
		return want
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", name, try))
	hash := strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:8]
	return want[:min(len(want), maxName-len(hash)-1)] + "-" + hash
}
