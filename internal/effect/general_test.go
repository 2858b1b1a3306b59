package effect

import "github.com/podvisor/podvisor/vmi"

const (
	onlyOne  = "Kubernetes takes no other value than 1 in a liveness probe"
	onlyName = "metadata.name is the only field of a node that Kubernetes matches, so there is no other value"
)

var generalArea = exceptions{
	without: map[string]string{
		"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[].matchFields[].key": onlyName,
		"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[].preference.matchFields[].key":       onlyName,
		"spec.livenessProbe.successThreshold": onlyOne,
	},
	alternatives: map[string][]any{
		"spec.dnsPolicy":                                      {"Default", "ClusterFirst", "ClusterFirstWithHostNet"},
		"spec.evictionStrategy":                               {"None", "LiveMigrate", "LiveMigrateIfPossible"},
		"spec.domain.cpu.model":                               {vmi.CPUModelPassthrough},
		"spec.domain.machine.type":                            {"pc-q35-7.2"},
		"spec.domain.firmware.uuid":                           {"5d307ca9-b3ef-428c-8861-06e72d69f224"},
		"bootOrder":                                           {7.0},
		"spec.domain.devices.panicDevices[].model":            {"isa"},
		"spec.domain.devices.interfaces[].macAddress":         {"02:00:00:00:00:11"},
		"spec.domain.devices.interfaces[].model":              {"virtio", "e1000", "e1000e", "ne2k_pci", "pcnet", "rtl8139"},
		"spec.domain.devices.interfaces[].ports[].protocol":   {"TCP", "UDP"},
		"spec.networks[].pod.vmNetworkCIDR":                   {"10.9.2.0/24"},
		"spec.networks[].pod.vmIPv6NetworkCIDR":               {"fd10:0:3::/120"},
		"spec.volumes[].containerDisk.imagePullPolicy":        {"Never", "IfNotPresent"},
		"spec.volumes[].containerDisk.path":                   {"/disk/other.qcow2"},
		".userDataBase64":                                     {"IyEvYmluL2Jhc2g="},
		".networkDataBase64":                                  {"dmVyc2lvbjogMQ=="},
		"spec.dnsConfig.nameservers[]":                        {"192.0.2.54"},
		"spec.tolerations[].operator":                         {"Exists", "Equal"},
		"spec.tolerations[].effect":                           {"NoSchedule", "PreferNoSchedule", "NoExecute"},
		"spec.topologySpreadConstraints[].whenUnsatisfiable":  {"ScheduleAnyway"},
		"spec.topologySpreadConstraints[].nodeAffinityPolicy": {"Ignore"},
		"spec.topologySpreadConstraints[].nodeTaintsPolicy":   {"Ignore"},
		// Without any binding it is a bridge, so that only a masquerade can become one.
		"spec.domain.devices.interfaces[].bridge": {map[string]any{}},
		".operator":          {"NotIn"},
		"spec.startStrategy": {"Paused"},
		"httpGet.scheme":     {"HTTPS"},
	},
	instead: map[string][]string{
		"spec.domain.devices.interfaces[].bridge":               {"masquerade"},
		"spec.domain.devices.interfaces[].masquerade":           {"bridge"},
		"spec.livenessProbe.guestAgentPing":                     {"exec", "httpGet", "tcpSocket"},
		"spec.readinessProbe.guestAgentPing":                    {"exec", "httpGet", "tcpSocket"},
		"spec.volumes[].cloudInitNoCloud.userData":              {"userDataBase64", "secretRef"},
		"spec.volumes[].cloudInitNoCloud.userDataBase64":        {"userData", "secretRef"},
		"spec.volumes[].cloudInitNoCloud.networkData":           {"networkDataBase64", "networkDataSecretRef"},
		"spec.volumes[].cloudInitNoCloud.networkDataBase64":     {"networkData", "networkDataSecretRef"},
		"spec.volumes[].cloudInitConfigDrive.userData":          {"userDataBase64", "secretRef"},
		"spec.volumes[].cloudInitConfigDrive.userDataBase64":    {"userData", "secretRef"},
		"spec.volumes[].cloudInitConfigDrive.networkData":       {"networkDataBase64", "networkDataSecretRef"},
		"spec.volumes[].cloudInitConfigDrive.networkDataBase64": {"networkData", "networkDataSecretRef"},
	},
	together: map[string]string{
		"spec.domain.devices.disks[].name":      "spec.volumes[].name",
		"spec.domain.devices.interfaces[].name": "spec.networks[].name",
	},
}
