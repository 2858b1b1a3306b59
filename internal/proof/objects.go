package proof

// Tests that go through the fields whose proof they are, one after the other, and require of
// each that something is different when it changes.
const (
	// sweep compares the command lines of QEMU.
	sweep = "TestLibvirtStartsQEMUWithEveryFieldOfTheDomain"
	// kept compares what libvirt keeps of the domains.
	kept = "TestLibvirtKeepsEveryFieldOfAnInterface"
	// every compares all that is computed.
	every = "TestEveryServedFieldHasAnEffect"
	// resolved compares what the configuration of a cluster means.
	resolved = "TestEveryServedFieldOfTheConfigurationMeansSomething"
)

// instanceStatus are the proofs of a VMI's status.
var instanceStatus = []group{
	{API, "TestAVMIBootsServesAndPowersOff", []seen{
		{"status.conditions[]", `v.Status.Condition(vmi.ConditionReady).Status`},
		{"status.interfaces[]", `v.Status.Interfaces[0].IP`},
		{"status.phase", `s.awaitPhase("web", vmi.PhaseRunning)`},
	}},
	{Unit, "TestTheInterfacesOfAVMIWithWhatTheGuestSays", []seen{
		{"status.interfaces[].interfaceName", `InterfaceName: "eth0"`},
	}},
	{API, "TestADebianGuestIsConfiguredByCloudInitAndItsAgent", []seen{
		{"status.fsFreezeStatus", `until("frozen")`},
	}},
	{API, "TestALifeTakesFiveWritesOfTheController", []seen{
		{"status.activePods", `v.Status.ActivePods`},
		{"status.launcherContainerImageVersion", `v.Status.LauncherContainerImageVersion`},
		{"status.nodeName", `v.Status.NodeName`},
	}},
	{API, "TestAGuestMovesThereAndBackAndItsUsersGoOn", []seen{
		{"status.migrationState.migrationUid", `m.UID, state.MigrationUID`},
		{"status.migrationState.sourceNode", `from, state.SourceNode`},
		{"status.migrationState.targetNode", `v.Status.NodeName, state.TargetNode`},
		{"status.migrationState.targetPod", `s.podOf(v).Name, state.TargetPod`},
	}},
	{API, "TestAGuestThatMovesKeepsItsTPMAndItsFirmware", []seen{
		{"status.migrationState.sourcePersistentStatePVCName", `v.Status.MigrationState.SourcePersistentStatePVCName, claim.Name`},
		{"status.migrationState.targetPersistentStatePVCName", `v.Status.MigrationState.TargetPersistentStatePVCName, claim.Name`},
	}},
	{API, "TestAHandlerWritesOfAVMIThatMovesToItsNodeWhatATargetReports", []seen{
		{"status.migrationState.abortStatus", `vmi.MigrationAbortSucceeded, now.AbortStatus`},
		{"status.migrationState.endTimestamp", `now.EndTimestamp`},
		{"status.migrationState.failed", `may not change a VMI of another node`},
		{"status.migrationState.failureReason", `"it was aborted", now.FailureReason`},
		{"status.migrationState.mode", `vmi.MigrationPreCopy, now.Mode`},
		{"status.migrationState.startTimestamp", `now.StartTimestamp`},
		{"status.migrationState.targetCPUSet[]", `now.TargetCPUSet`},
		{"status.migrationState.targetDirectMigrationNodePorts", `now.TargetDirectMigrationNodePorts`},
		{"status.migrationState.targetNodeAddress", `"192.0.2.2", now.TargetNodeAddress`},
		{"status.migrationState.targetNodeDomainDetected", `now.TargetNodeDomainDetected`},
		{"status.migrationState.targetNodeDomainReadyTimestamp", `now.TargetNodeDomainReadyTimestamp`},
		{"status.migrationState.targetNodeTopology", `now.TargetNodeTopology`},
	}},
	{API, "TestAVMISaysHowItMovesAsItWasWritten", []seen{
		{"status.migrationState.abortRequested", `m.AbortRequested`},
		{"status.migrationState.migrationConfiguration", `*m.MigrationConfiguration.CompletionTimeoutPerGiB`},
		{"status.migrationState.migrationPolicyName", `"slow", *m.MigrationPolicyName`},
	}},
	{Unit, "TestAVMISaysFromItsHandOverOnWhetherAndHowItMoves", []seen{
		{"status.migrationMethod", `vmi.BlockMigration, s.MigrationMethod`},
	}},
	{Unit, "TestTheRoleOfAPodFollowsFromTheStatus", []seen{
		{"status.migrationState.completed", `one that has been here`},
	}},
	{Unit, "TestTheActivePodOfAVMIThatHasMovedIsTheTarget", []seen{
		{"status.migrationState.sourcePod", `one that moves again`},
	}},
	{API, "TestAGuestIsStartedByAKernelOfAnImage", []seen{
		{"status.kernelBootStatus", `s.get("kernel").Status.KernelBootStatus`},
	}},
	{API, "TestAGuestHasACPUOfItsNodeForItself", []seen{
		{"status.qosClass", `*v.Status.QOSClass`},
	}},
	{API, "TestTheConfigurationReachesGuestsAndComponents", []seen{
		{"status.machine", `v.Status.Machine.Type`},
	}},
	{API, "TestAnEvictionWithStrategyExternalMarksTheVMI", []seen{
		{"status.evacuationNodeName", `"n1", now.Status.EvacuationNodeName`},
	}},
	{API, "TestAGuestIsTypedIntoWithKubectl", []seen{
		{"status.guestReboots", `after.Status.GuestReboots.Count`},
	}},
	{API, "TestAGuestWhoseKernelPanicsHasFailed", []seen{
		{"status.guestPanics", `v.Status.GuestPanics.Count`},
		{"status.reason", `"Crashed", v.Status.Reason`},
	}},
	{API, "TestAVMStartsStopsAndStartsAgainWithFewWrites", []seen{
		{"status.virtualMachineRevisionName", `first.Status.VirtualMachineRevisionName`},
	}},
	{API, "TestWhatAGuestWritesToItsClaimsIsThereAfterAStop", []seen{
		{"status.volumeStatus[].persistentVolumeClaimInfo", `info.ClaimName`},
	}},
	{Unit, "TestTheHandOverSaysWhatTheClaimsAre", []seen{
		{"status.volumeStatus[].persistentVolumeClaimInfo.filesystemOverhead", `FilesystemOverhead: new("0.055")`},
		{"status.volumeStatus[].persistentVolumeClaimInfo.preallocated", `Preallocated: true`},
	}},
	{Unit, "TestTheLinksOfAVMIAreThoseOfItsDomain", []seen{
		{"status.interfaces[].linkState", `LinkState: "down"`},
	}},
	{Unit, "TestAPlanWithEachFieldOfAnInterface", []seen{
		{"status.interfaces[].queueCount", `cfg.Interfaces[0].QueueCount`},
	}},
	{Unit, "TestPlanOfMasquerade", []seen{
		{"status.interfaces[].podInterfaceName", `PodInterfaceName: "eth0"`},
	}},
	{Unit, "TestRunningIsOneWrite", []seen{
		{"status.VSOCKCID", `VSOCKCID: new(uint32(5))`},
		{"status.currentCPUTopology", `CurrentCPUTopology: &vmi.CPUTopology`},
		{"status.memory", `Memory: &vmi.MemoryStatus`},
		{"status.phaseTransitionTimestamps[]", `PhaseTransitionTimestamps: []vmi.PhaseTransitionTimestamp`},
		{"status.runtimeUser", `RuntimeUser: 107`},
		{"status.volumeStatus[]", `VolumeStatus: []vmi.VolumeStatus`},
	}},
}

// vm are the proofs of a VM. Its template has those of a VMI.
var vm = []group{
	{Guest, "TestAVMOfEachRunStrategyStartsEndsAndStopsAsItSays", []seen{
		{"spec.runStrategy", `s.awaitPrintable(name, vmi.StatusStopped)`},
		{"spec.template", `s.next(name, "")`},
	}},
	{API, "TestTheOldFieldRunningStartsAndStops", []seen{
		{"spec.running", `s.awaitPrintable("vm", vmi.StatusRunning)`},
	}},
	{API, "TestAVMIsStartedWhenItsDataVolumesAreFilled", []seen{
		{"spec.dataVolumeTemplates[]", `metav1.IsControlledBy(made, owner)`},
	}},
	{API, "TestTheStatusOfAVMSaysWhyItsPodDoesNotRun", []seen{
		{"status", `s.awaitPrintable("vm", vmi.StatusUnschedulable)`},
	}},
	{API, "TestAStartThatFailsIsTriedAgainLater", []seen{
		{"status.startFailure", `v.Status.StartFailure.ConsecutiveFailCount`},
	}},
	{Unit, "TestAVMKeepsTheInstanceTypeThatItWasFirstStartedWith", []seen{
		{"spec.instancetype", `w.vmi.Spec.Domain.CPU.Sockets`},
		{"status.instancetypeRef", `w.vm.Status.InstancetypeRef`},
	}},
	{Unit, "TestAVolumeNamesWhatItsVMIsToUse", []seen{
		{"spec.instancetype.inferFromVolume", `tt.want, out.Spec.Instancetype`},
		{"spec.instancetype.inferFromVolumeFailurePolicy", `require.Nil(t, out.Spec.Instancetype)`},
	}},
	{Unit, "TestAVolumeNamesAPreferenceWithoutAKind", []seen{
		{"spec.preference.inferFromVolume", `&vmi.PreferenceMatcher{Name: "linux"}, out.Spec.Preference`},
	}},
	{Unit, "TestTheKindAndTheRevisionOfAReference", []seen{
		{"spec.instancetype.kind", `ref.Kind`},
		{"spec.instancetype.revisionName", `first, w.vm.Status.InstancetypeRef`},
	}},
	{Unit, "TestAVMHasWhatItsPreferenceSays", []seen{
		{"spec.preference", `w.vmi.Spec.Domain.Devices.Rng`},
		{"status.preferenceRef", `ref, w.vm.Status.PreferenceRef`},
	}},
	{API, "TestRequestsStartStopAndRestartAVM", []seen{
		{"status.stateChangeRequests[]", `require.Len(t, n.instances(), 2)`},
	}},
}

// size are the proofs of an instance type, of a namespace or of the cluster.
var size = []group{
	{Unit, "TestAnInstanceTypeIsApplied", []seen{
		{"spec", `requireApplied(t, a)`},
	}},
	{Unit, "TestProcessorsAreDividedAsThePreferenceSays", []seen{
		{"spec.cpu.guest", `topology{s.Domain.CPU.Sockets`},
	}},
	{Unit, "TestAPodAsksForLessMemoryThanItsGuestSees", []seen{
		{"spec.memory.overcommitPercent", `s.Domain.Resources.Requests.Memory().String()`},
	}},
}

// preference are the proofs of a preference, of a namespace or of the cluster.
var preference = []group{
	{Unit, "TestAPreferenceIsApplied", []seen{
		{"spec", `requireApplied(t, a)`},
	}},
	{Unit, "TestAPreferenceIsAppliedToDevices", []seen{
		{"spec.devices", `requireApplied(t, a)`},
	}},
	{Unit, "TestAnInstanceTypeIsApplied", []seen{
		{"spec.annotations", `requireApplied(t, a)`},
	}},
	{Unit, "TestProcessorsAreDividedAsThePreferenceSays", []seen{
		{"spec.cpu.preferredCPUTopology", `topology{s.Domain.CPU.Sockets`},
		{"spec.cpu.spreadOptions", `topology{s.Domain.CPU.Sockets`},
		{"spec.preferSpreadSocketToCoreRatio", `topology{s.Domain.CPU.Sockets`},
	}},
	{Unit, "TestAPreferenceHasRequirements", []seen{
		{"spec.requirements", `[]string{tt.want}, fieldsOf(faults)`},
	}},
	{Unit, "TestAPreferenceDecidesForAllStarts", []seen{
		{"spec.volumes", `*out.Spec.DataVolumeTemplates[0].Spec.PVC.StorageClassName`},
	}},
}

// replicaSet are the proofs of a set of VMIs.
var replicaSet = []group{
	{Guest, "TestASetIsScaledWhileItsGuestsAreKilled", []seen{
		{"spec.replicas", `s.awaitSet("web", 5)`},
		{"spec.template", `s.awaitSet("web", 5)`},
	}},
	{API, "TestASetIsScaledAndReplacesWhatEnds", []seen{
		{"spec.paused", `return o.Status.Replicas == 5`},
		{"status", `s.awaitReady(3).Status.LabelSelector`},
	}},
	{API, "TestASetAdoptsAndReleasesBySelector", []seen{
		{"spec.selector", `it is not adopted`},
	}},
}

// pool are the proofs of a pool of VMs.
var pool = []group{
	{API, "TestAPoolIsScaledAndItsTemplateReachesItsVMs", []seen{
		{"spec.replicas", `s.awaitPoolReady(5)`},
		{"spec.selector", `"app=web", s.awaitPoolReady(3).Status.LabelSelector`},
		{"spec.virtualMachineTemplate", `s.awaitMemory(5, "96Mi")`},
		{"spec.paused", `a paused pool costs no write`},
		{"status", `s.awaitPoolReady(3).Status.LabelSelector`},
	}},
	{API, "TestTheDisksOfAPoolStayOrGoAsItAsks", []seen{
		{"spec.scaleInStrategy.proactive.statePreservation", `the next VM of the name has the disk of the one before`},
	}},
	{Unit, "TestTheOrdinalEndsTheNamesOfDataVolumes", []seen{
		{"spec.scaleInStrategy.opportunistic.statePreservation", `d.ObjectMeta.Annotations[vm.KeptAnnotation] == "true"`},
	}},
	{API, "TestAVMOfAPoolThatDoesNotStartIsReplaced", []seen{
		{"spec.autohealing", `len(p.Status.Replaced) == 1`},
		{"status.replaced[]", `"web-0", first.Name`},
	}},
	{Unit, "TestATemplateReachesTheVMsAsTheStrategySays", []seen{
		{"spec.maxUnavailable", `tt.most, w.rolled("65Mi")`},
		{"spec.updateStrategy", `tt.restarted, w.restarted`},
		{"spec.updateStrategy.opportunistic", `tt.current`},
		{"spec.updateStrategy.unmanaged", `w.changed, tt.changed`},
	}},
	{Unit, "TestWhichVMsGoFirst", []seen{
		{"spec.scaleInStrategy", `tt.gone, w.deleted`},
		{"spec.updateStrategy.proactive.selectionPolicy.selectors", `tt.gone, w.deleted`},
	}},
	{Unit, "TestTheOrdinalEndsTheNamesOfConfigMapsAndSecretsWhereItIsAskedFor", []seen{
		{"spec.nameGeneration.appendIndexToConfigMapRefs", `[]string{"c-7", "s", "c-7", "s", "s", "n", "s"}, names()`},
		{"spec.nameGeneration.appendIndexToSecretRefs", `[]string{"c", "s-7", "c", "s-7", "s-7", "n-7", "s-7"}, names()`},
	}},
}

// migration are the proofs of the move of a VMI.
var migration = []group{
	{API, "TestAMigrationIsStoredWithWhatPodvisorSaysOfIt", []seen{
		{"spec.addedNodeSelector", `map[string]string{"zone": "b"}, m.Spec.AddedNodeSelector`},
		{"spec.vmiName", `"web", m.Spec.VMIName`},
		{"status.conditions[]", `m.Status.Condition(vmi.ConditionAbortRequested).Message`},
		{"status.migrationState", `status.MigrationState, m.Status.MigrationState`},
		{"status.phase", `vmi.MigrationPhaseFailed, m.Status.Phase`},
		{"status.phaseTransitionTimestamps[]", `m.Status.PhaseTransitionTimestamps, 2`},
	}},
	{API, "TestTheRoleMigrateAloneMovesVMIs", []seen{
		{"spec.priority", `vmi.MigrationSystemCritical, *own.Spec.Priority`},
	}},
}

// migrationPolicy are the proofs of the settings of migrations.
var migrationPolicy = []group{
	{Unit, "TestTheSettingsOfAMigration", []seen{
		{"spec", `text(t, want), text(t, got)`},
	}},
	{Unit, "TestThePolicyOfAVMI", []seen{
		{"spec.selectors", `tt.want == got`},
	}},
}

// kubeVirt are the proofs of a cluster's configuration.
var kubeVirt = []group{
	{Guest, "TestTheConfigurationReachesGuestsAndComponents", []seen{
		{"spec.configuration.architectureConfiguration.amd64.machineType", `"pc-q35-6.2", v.Status.Machine.Type`},
		{"spec.configuration.developerConfiguration.featureGates[]", `claim-made of 32768 sectors`},
		{"spec.configuration.developerConfiguration.logVerbosity.virtLauncher", `"level":"DEBUG"`},
		{"spec.configuration.developerConfiguration.useEmulation", `s.awaitPhase("web", vmi.PhaseRunning)`},
		{"spec.configuration.network.defaultNetworkInterface", `the default of the cluster`},
		{"spec.configuration.smbios", `http://web/vendor`},
	}},
	{API, "TestTheStatusReportsTheGuestsAgent", []seen{
		{"spec.configuration.supportedGuestAgentVersions[]", `supported are 1.*`},
	}},
	{API, "TestTheClusterDecidesOnMachineTypeAndProcessor", []seen{
		{"spec.configuration.architectureConfiguration", `must match pc-q35-7.*`},
		{"spec.configuration.cpuModel", `settings.State().Config.Defaults.CPUModel`},
	}},
	{API, "TestAChangedConfigurationNeedsNoRestart", []seen{
		{"spec.configuration.cpuRequest", `"300m", cpu(s.podOf("configured"))`},
		{"spec.configuration.network.permitBridgeInterfaceOnPodNetwork", `use masquerade`},
	}},
	{API, "TestTheStatusFollowsTheHandlers", []seen{
		{"status", `versions(k), "while handlers are replaced"`},
	}},
	{Unit, "TestTheStatusSaysHowManyVMIsAreOutdated", []seen{
		{"status.outdatedVirtualMachineInstanceWorkloads", `3, *k.Status.OutdatedVirtualMachineInstanceWorkloads`},
	}},
	{Pod, "TestMemoryGoesOverTheNetworkOfMigrationsAndNoOther", []seen{
		{"spec.configuration.migrations.network", `sent(t, from, MigrationInterface), bytes`},
	}},
	{Unit, resolved, each(
		"spec.configuration", "spec.workloadUpdateStrategy",
	)},
}
