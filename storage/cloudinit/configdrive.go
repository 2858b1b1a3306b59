package cloudinit

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/podvisor/podvisor/vmi"
)

// The files of the data source, as OpenStack lays them out.
// https://docs.openstack.org/nova/latest/user/metadata.html
const (
	driveMeta    = "openstack/latest/meta_data.json"
	driveUser    = "openstack/latest/user_data"
	driveNetwork = "openstack/latest/network_data.json"
)

// driveMetaData is the file meta_data.json.
type driveMetaData struct {
	Hostname      string            `json:"hostname"`
	InstanceID    string            `json:"instance_id"`
	InstanceType  string            `json:"instance_type,omitempty"`
	LocalHostname string            `json:"local_hostname"`
	Keys          map[string]string `json:"public_keys,omitempty"`
	UUID          string            `json:"uuid"`
	Devices       []Device          `json:"devices,omitempty"`
}

// Device is a device of the guest that has a tag in the spec, as OpenStack describes
// those that have a role.
type Device struct {
	Type DeviceType `json:"type"`
	// Bus is pci, scsi, sata or usb. Empty: not known.
	Bus string `json:"bus,omitempty"`
	// Address is where the device is on its bus: domain:bus:slot.function on the PCI
	// bus, controller:bus:target:unit of scsi and sata. Empty: not known.
	Address string `json:"address,omitempty"`
	// MAC is the address of an interface.
	MAC string `json:"mac,omitempty"`
	// Serial is the serial number of a disk, if the spec has one.
	Serial string   `json:"serial,omitempty"`
	Tags   []string `json:"tags"`
}

// DeviceType is what a [Device] is.
type DeviceType string

// The types of devices.
const (
	DeviceDisk DeviceType = "disk"
	DeviceNIC  DeviceType = "nic"
	DeviceHost DeviceType = "hostdev"
)

// named gives each key a name, as OpenStack does: its number.
func named(keys []string) map[string]string {
	all := map[string]string{}
	for i, k := range keys {
		all[strconv.Itoa(i)] = k
	}
	return all
}

// ConfigDrive returns the files of the ConfigDrive data source for v, all in
// openstack/latest: meta_data.json, and user_data and network_data.json if there is
// such data. meta_data.json describes the devices. The uuid, without which cloud-init refuses the disk, is that of the
// firmware, or else the VMI's UID. Its error joins all faults, which wrap
// [vmi.ErrInvalid].
func ConfigDrive(v *vmi.VirtualMachineInstance, c *vmi.CloudInitConfigDrive, s Secrets, devices ...Device) ([]File, error) {
	uuid := v.UID
	if f := v.Spec.Domain.Firmware; f != nil && f.UUID != "" {
		uuid = f.UUID
	}
	meta, err := json.Marshal(driveMetaData{
		Hostname: v.Hostname(), InstanceID: instanceID(v), InstanceType: instanceType(v), LocalHostname: v.Hostname(), UUID: string(uuid), Keys: named(s.Keys), Devices: devices,
	})
	if err != nil {
		return nil, fmt.Errorf("write meta_data.json: %w", err)
	}
	user, network, err := both(form{plain: c.UserData, encoded: c.UserDataBase64, secret: s.UserData},
		form{plain: c.NetworkData, encoded: c.NetworkDataBase64, secret: s.NetworkData})
	if err != nil {
		return nil, err
	}
	files := []File{{driveMeta, meta}}
	if user != nil {
		files = append(files, File{driveUser, user})
	}
	if network != nil {
		files = append(files, File{driveNetwork, network})
	}
	return files, nil
}
