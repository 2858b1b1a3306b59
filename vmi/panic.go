package vmi

// PanicDevice is a device by which the guest's kernel reports that it crashed.
type PanicDevice struct {
	// Model is the device's model. Default: isa on amd64, pvpanic on arm64.
	// +optional
	Model *PanicDeviceModel `json:"model,omitempty"`
}

// PanicDeviceModel is the model of a panic device.
//
// +podvisor:enum
type PanicDeviceModel string

// The models of a panic device.
const (
	// PanicDeviceISA is the model of amd64: pvpanic at a port of the ISA bus, found
	// by ACPI.
	PanicDeviceISA PanicDeviceModel = "isa"
	// PanicDeviceHyperv is for Windows: the registers by which guests of Hyper-V
	// report a crash.
	PanicDeviceHyperv PanicDeviceModel = "hyperv"
	// PanicDevicePVPanic is the model of arm64: pvpanic on the PCI bus. Guests of amd64
	// have isa, which does the same.
	PanicDevicePVPanic PanicDeviceModel = "pvpanic"
)
