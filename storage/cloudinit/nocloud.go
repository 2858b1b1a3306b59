package cloudinit

import (
	"cmp"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// noCloudMeta is the file meta-data.
// https://cloudinit.readthedocs.io/en/latest/reference/datasources/nocloud.html
type noCloudMeta struct {
	InstanceID   string   `json:"instance-id"`
	InstanceType string   `json:"instance-type,omitempty"`
	Hostname     string   `json:"local-hostname"`
	Keys         []string `json:"public-keys,omitempty"`
}

// NoCloud returns the files of the NoCloud data source for v: meta-data,
// user-data and, if there is network data, network-config. Its error joins all
// faults, which wrap [vmi.ErrInvalid].
func NoCloud(v *vmi.VirtualMachineInstance, c *vmi.CloudInitNoCloud, s Secrets) ([]File, error) {
	meta, err := yaml.Marshal(noCloudMeta{InstanceID: instanceID(v), InstanceType: instanceType(v), Hostname: v.Hostname(), Keys: s.Keys})
	if err != nil {
		return nil, fmt.Errorf("write meta-data: %w", err)
	}
	user, network, err := both(form{plain: c.UserData, encoded: c.UserDataBase64, secret: s.UserData},
		form{plain: c.NetworkData, encoded: c.NetworkDataBase64, secret: s.NetworkData})
	if err != nil {
		return nil, err
	}
	// cloud-init ignores a disk without the file user-data, which may be empty.
	files := []File{{"meta-data", meta}, {"user-data", user}}
	if network != nil {
		files = append(files, File{"network-config", network})
	}
	return files, nil
}

// instanceID identifies the instance to the guest. It stays the same when a VMI of
// the same name is made again.
func instanceID(v *vmi.VirtualMachineInstance) string { return v.Name + "." + v.Namespace }

// instanceType is the name of the instance type of the VM that the VMI belongs to, which both
// data sources show as that of the instance. Empty: it has none.
func instanceType(v *vmi.VirtualMachineInstance) string {
	return cmp.Or(v.Annotations["kubevirt.io/cluster-instancetype-name"], v.Annotations["kubevirt.io/instancetype-name"])
}
