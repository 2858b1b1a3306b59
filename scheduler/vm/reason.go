package vm

// Reasons of the conditions Failure and Ready of a VM.
const (
	// FailedCreate: the API server does not accept the VMI.
	FailedCreate = "FailedCreate"
	// NameTaken: a VMI that is not the VM's has its name.
	NameTaken = "VirtualMachineInstanceNameTaken"
	// InvalidSpec: no VMI can be made from the spec.
	InvalidSpec = "InvalidSpec"

	// FailedFindInstancetype: the instance type that the VM names does not exist.
	FailedFindInstancetype = "FailedFindInstancetype"
	// FailedFindPreference: the preference that the VM names does not exist.
	FailedFindPreference = "FailedFindPreference"

	// DataVolumesNotServed: the API server does not have DataVolumes.
	DataVolumesNotServed = "DataVolumesNotServed"
	// DataVolumeNameTaken: a DataVolume that is not the VM's has the name of a template.
	DataVolumeNameTaken = "DataVolumeNameTaken"
	// FailedDataVolumeImport: a DataVolume cannot be filled.
	FailedDataVolumeImport = "FailedDataVolumeImport"

	// ReasonInstanceNotExists is the reason of the condition Ready of a VM without a VMI.
	ReasonInstanceNotExists = "VMINotExists"
)
