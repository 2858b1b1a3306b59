package credential

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// Seed returns the SSH public keys that cloud-init installs for its default user,
// those of all Secrets together. Its error joins the faults of the Secrets, which
// name lines and no content; they are no faults of the spec, since a Secret may change.
func Seed(v *vmi.VirtualMachineInstance, contents Contents) (volume.Keys, error) {
	var k volume.Keys
	var faults []string
	for _, c := range v.Spec.AccessCredentials {
		if c.SSHPublicKey == nil {
			continue
		}
		m, secret := c.SSHPublicKey.PropagationMethod, secretOf(c)
		for _, to := range []struct {
			on   *vmi.CloudInitPropagation
			keys *[]string
		}{{m.NoCloud, &k.NoCloud}, {m.ConfigDrive, &k.ConfigDrive}} {
			if to.on == nil {
				continue
			}
			keys, wrong := keysOf(secret, contents[secret])
			*to.keys, faults = append(*to.keys, keys...), append(faults, wrong...)
		}
	}
	k.NoCloud, k.ConfigDrive = sorted(k.NoCloud), sorted(k.ConfigDrive)
	if n := max(len(k.NoCloud), len(k.ConfigDrive)); n > MaxKeys {
		faults = append(faults, fmt.Sprintf("the access credentials have %d SSH public keys for cloud-init, and at most %d are installed", n, MaxKeys))
	}
	if len(faults) > 0 {
		return volume.Keys{}, errors.New(strings.Join(faults, "; "))
	}
	return k, nil
}

// sorted returns the keys sorted and each once.
func sorted(keys []string) []string {
	slices.Sort(keys)
	return slices.Compact(keys)
}
