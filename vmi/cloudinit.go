package vmi

import (
	corev1 "k8s.io/api/core/v1"
)

// CloudInitNoCloud is the data of cloud-init's NoCloud data source, which the
// guest finds on a disk labelled cidata. It also holds the host name.
//
// +podvisor:atLeastOne:of=userData;userDataBase64;secretRef;networkData;networkDataBase64;networkDataSecretRef,message="cloudInitNoCloud needs at least one of"
// +podvisor:atMostOne:of=userData;userDataBase64;secretRef,message="cloudInitNoCloud has at most one source of user data"
// +podvisor:atMostOne:of=networkData;networkDataBase64;networkDataSecretRef,message="cloudInitNoCloud has at most one source of network data"
type CloudInitNoCloud struct {
	// UserDataSecretRef names a Secret of the VMI's namespace whose key userdata
	// (or userData) holds the user data. The VMI does not start until it exists.
	// +optional
	UserDataSecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`

	// UserData is the user data: a script that begins with #!, or YAML that
	// begins with #cloud-config. At most 2048 bytes; more belongs in a Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	UserData string `json:"userData,omitempty"`

	// UserDataBase64 is the user data in base64, at most 2048 bytes when it is
	// decoded. What is not base64 is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=2732
	UserDataBase64 string `json:"userDataBase64,omitempty"`

	// NetworkDataSecretRef names a Secret of the VMI's namespace whose key
	// networkdata (or networkData) holds the network configuration. The VMI does
	// not start until it exists.
	// +optional
	NetworkDataSecretRef *corev1.LocalObjectReference `json:"networkDataSecretRef,omitempty"`

	// NetworkData is the network configuration, version 1 or 2. At most 2048
	// bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	NetworkData string `json:"networkData,omitempty"`

	// NetworkDataBase64 is the network configuration in base64, at most 2048
	// bytes when it is decoded. What is not base64 is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=2732
	NetworkDataBase64 string `json:"networkDataBase64,omitempty"`
}

// CloudInitConfigDrive is the data of cloud-init's ConfigDrive data source,
// which the guest finds on a disk labelled config-2. It also holds the host name
// and the UUID of the firmware.
//
// +podvisor:atLeastOne:of=userData;userDataBase64;secretRef;networkData;networkDataBase64;networkDataSecretRef,message="cloudInitConfigDrive needs at least one of"
// +podvisor:atMostOne:of=userData;userDataBase64;secretRef,message="cloudInitConfigDrive has at most one source of user data"
// +podvisor:atMostOne:of=networkData;networkDataBase64;networkDataSecretRef,message="cloudInitConfigDrive has at most one source of network data"
type CloudInitConfigDrive struct {
	// UserDataSecretRef names a Secret of the VMI's namespace whose key userdata
	// (or userData) holds the user data. The VMI does not start until it exists.
	// +optional
	UserDataSecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`

	// UserData is the user data, at most 2048 bytes; more belongs in a Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	UserData string `json:"userData,omitempty"`

	// UserDataBase64 is the user data in base64, at most 2048 bytes when it is
	// decoded. What is not base64 is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=2732
	UserDataBase64 string `json:"userDataBase64,omitempty"`

	// NetworkDataSecretRef names a Secret of the VMI's namespace whose key
	// networkdata (or networkData) holds the network configuration. The VMI does
	// not start until it exists.
	// +optional
	NetworkDataSecretRef *corev1.LocalObjectReference `json:"networkDataSecretRef,omitempty"`

	// NetworkData is the network configuration as OpenStack writes it, which is
	// JSON. At most 2048 bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	NetworkData string `json:"networkData,omitempty"`

	// NetworkDataBase64 is the network configuration in base64, at most 2048
	// bytes when it is decoded. What is not base64 is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=2732
	NetworkDataBase64 string `json:"networkDataBase64,omitempty"`
}
