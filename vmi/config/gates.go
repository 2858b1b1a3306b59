package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
)

// harmless are gates that need not be named: what they switch on is on, or is permitted by
// another field.
var harmless = map[string]bool{
	// Devices are permitted by permittedHostDevices.
	"GPU": true, "HostDevices": true,
	// KubeVirt has them on, and so has Podvisor.
	"ImageVolume": true, "NonRoot": true, "PSA": true, "NUMA": true, "CPUManager": true, "ExpandDisks": true, "VMPersistentState": true,
	"EnableVirtioFsConfigVolumes": true, "EnableVirtioFsStorageVolumes": true,
}

// Gates says of each feature gate of the configuration that has no effect why, beginning
// with its field. A name that is misspelt is one of them: KubeVirt takes every name.
func Gates(c *vmi.KubeVirtConfiguration) []string {
	if c == nil || c.DeveloperConfiguration == nil {
		return nil
	}
	var out []string
	for i, name := range c.DeveloperConfiguration.FeatureGates {
		if harmless[name] || effective(name) {
			continue
		}
		why := "it is misspelt, or what it switches on is not served"
		for _, right := range known() {
			if strings.EqualFold(strings.TrimSpace(name), right) {
				why = "write " + right
			}
		}
		out = append(out, fmt.Sprintf("spec.configuration.developerConfiguration.featureGates[%d]: %q has no effect: %s", i, name, why))
	}
	return out
}

// effective says that the gate changes what VMIs may have.
func effective(name string) bool {
	with := &vmi.KubeVirtConfiguration{DeveloperConfiguration: &vmi.DeveloperConfiguration{FeatureGates: []string{name}}}
	return !equality.Semantic.DeepEqual(validate.Configured(with), validate.Configured(&vmi.KubeVirtConfiguration{}))
}

// known are the gates that have an effect, or need none.
func known() []string {
	out := []string{"HostDisk", "PortRangesSpec", "VSOCK", "WorkloadEncryptionSEV"}
	for name := range harmless {
		out = append(out, name)
	}
	return out
}
