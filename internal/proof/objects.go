package proof

// Tests that see many fields.
const (
	// sweep changes one field after the other and compares the command lines of QEMU.
	sweep = "TestLibvirtStartsQEMUWithEveryFieldOfTheDomain"
	// kept compares what libvirt keeps of the domains.
	kept = "TestLibvirtKeepsEveryFieldOfAnInterface"
	// every compares all that is computed.
	every = "TestEveryServedFieldHasAnEffect"
)

// instanceStatus are the proofs of a VMI's status.
var instanceStatus = []group{
	{API, "TestAVMIBootsServesAndPowersOff", []string{"status.conditions[]", "status.interfaces[]", "status.phase"}},
	{API, "TestTheStatusReportsTheGuestsAgent", []string{"status.interfaces[].interfaceName"}},
	{API, "TestADebianGuestIsConfiguredByCloudInitAndItsAgent", []string{"status.fsFreezeStatus"}},
	{API, "TestALifeTakesFiveWritesOfTheController", []string{"status.activePods", "status.launcherContainerImageVersion", "status.nodeName"}},
	{API, "TestASecondPodOfAVMIWaitsOnAnotherNodeAndDisturbsNothing", []string{
		"status.migrationState.migrationUid", "status.migrationState.sourceNode", "status.migrationState.targetNode", "status.migrationState.targetPod",
	}},
	{API, "TestAHandlerWritesOfAVMIThatMovesToItsNodeWhatATargetReports", []string{
		"status.migrationState.failed",
		"status.migrationState.targetCPUSet[]",
		"status.migrationState.targetDirectMigrationNodePorts",
		"status.migrationState.targetNodeAddress",
		"status.migrationState.targetNodeDomainDetected",
		"status.migrationState.targetNodeDomainReadyTimestamp",
		"status.migrationState.targetNodeTopology",
	}},
	{Unit, "TestTheRoleOfAPodFollowsFromTheStatus", []string{"status.migrationState.completed"}},
	{Unit, "TestTheActivePodOfAVMIThatHasMovedIsTheTarget", []string{"status.migrationState.sourcePod"}},
	{API, "TestAGuestThatPowersItselfOffSucceeds", []string{"status.reason"}},
	{API, "TestAGuestIsStartedByAKernelOfAnImage", []string{"status.kernelBootStatus"}},
	{API, "TestAGuestHasACPUOfItsNodeForItself", []string{"status.qosClass"}},
	{API, "TestTheConfigurationReachesGuestsAndComponents", []string{"status.machine"}},
	{API, "TestAnEvictionWithStrategyExternalMarksTheVMI", []string{"status.evacuationNodeName"}},
	{API, "TestAGuestIsTypedIntoWithKubectl", []string{"status.guestReboots"}},
	{API, "TestAGuestWhoseKernelPanicsHasFailed", []string{"status.guestPanics"}},
	{API, "TestAVMStartsStopsAndStartsAgainWithFewWrites", []string{"status.virtualMachineRevisionName"}},
	{API, "TestWhatAGuestWritesToItsClaimsIsThereAfterAStop", []string{"status.volumeStatus[].persistentVolumeClaimInfo", "status.volumeStatus[].name"}},
	{Unit, "TestTheHandOverSaysWhatTheClaimsAre", []string{
		"status.volumeStatus[].persistentVolumeClaimInfo.filesystemOverhead",
		"status.volumeStatus[].persistentVolumeClaimInfo.preallocated",
	}},
	{Unit, "TestTheLinksOfAVMIAreThoseOfItsDomain", []string{"status.interfaces[].linkState"}},
	{Unit, "TestAPlanWithEachFieldOfAnInterface", []string{
		"status.interfaces[].podInterfaceName",
		"status.interfaces[].queueCount",
	}},
	{Unit, "TestRunningIsOneWrite", []string{
		"status.VSOCKCID",
		"status.currentCPUTopology",
		"status.memory",
		"status.phaseTransitionTimestamps[]",
		"status.runtimeUser",
		"status.volumeStatus[]",
	}},
}

// vm are the proofs of a VM. Its template has those of a VMI.
var vm = []group{
	{Guest, "TestAVMOfEachRunStrategyStartsEndsAndStopsAsItSays", []string{"spec.runStrategy", "spec.template"}},
	{API, "TestTheOldFieldRunningStartsAndStops", []string{"spec.running"}},
	{API, "TestAVMIsStartedWhenItsDataVolumesAreFilled", []string{"spec.dataVolumeTemplates[]"}},
	{API, "TestTheStatusOfAVMSaysWhyItsPodDoesNotRun", []string{"status"}},
	{API, "TestAStartThatFailsIsTriedAgainLater", []string{"status.startFailure"}},
	{API, "TestRequestsStartStopAndRestartAVM", []string{"status.stateChangeRequests[]"}},
}

// replicaSet are the proofs of a set of VMIs.
var replicaSet = []group{
	{Guest, "TestASetIsScaledWhileItsGuestsAreKilled", []string{"spec.replicas", "spec.template"}},
	{API, "TestASetIsScaledAndReplacesWhatEnds", []string{"spec.paused", "status"}},
	{API, "TestASetAdoptsAndReleasesBySelector", []string{"spec.selector"}},
}

// kubeVirt are the proofs of a cluster's configuration.
var kubeVirt = []group{
	{Guest, "TestTheConfigurationReachesGuestsAndComponents", []string{
		"spec.configuration.architectureConfiguration.amd64.machineType",
		"spec.configuration.cpuModel",
		"spec.configuration.developerConfiguration.featureGates[]",
		"spec.configuration.developerConfiguration.logVerbosity.virtLauncher",
		"spec.configuration.developerConfiguration.useEmulation",
		"spec.configuration.network.defaultNetworkInterface",
		"spec.configuration.smbios",
	}},
	{API, "TestTheStatusReportsTheGuestsAgent", []string{
		"spec.configuration.supportedGuestAgentVersions[]",
	}},
	{API, "TestTheClusterDecidesOnMachineTypeAndProcessor", []string{
		"spec.configuration.architectureConfiguration",
	}},
	{API, "TestAChangedConfigurationNeedsNoRestart", []string{
		"spec.configuration.cpuRequest",
		"spec.configuration.network.permitBridgeInterfaceOnPodNetwork",
	}},
	{API, "TestAnEvictionFollowsTheStrategyOfTheVMI", []string{
		"spec.configuration.evictionStrategy",
	}},
	{API, "TestAVMIWithPersistentStateHasAClaimAndSaysWhyNot", []string{
		"spec.configuration.vmStateStorageClass",
	}},
	{API, "TestTheStatusFollowsTheHandlers", []string{
		"status",
	}},
	{Unit, "TestResolve", []string{
		"spec.configuration",
	}},
}
