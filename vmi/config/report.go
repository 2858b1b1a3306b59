package config

import (
	"cmp"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Components is how far the components are. Virt-controller, which reports it,
// is there.
type Components struct {
	// Waiting is what is not there yet, in a sentence. Empty: everything is.
	Waiting string
	// Updating is what is being replaced, in a sentence. Empty: nothing.
	Updating string
	// Version is the version of virt-controller, as in v1.2.3.
	Version string
	// Outdated is how many VMIs run with another launcher than a start would give them.
	// Nil: they were not counted.
	Outdated *int
}

// Reasons of the conditions of a KubeVirt.
const (
	// ReasonAllComponentsReady: everything is as it should be.
	ReasonAllComponentsReady = "AllComponentsReady"
	// ReasonAllResourcesCreated: everything that the components need is there.
	ReasonAllResourcesCreated = "AllResourcesCreated"
	// ReasonComponentsNotReady: some of the components are not there yet.
	ReasonComponentsNotReady = "ComponentsNotReady"
	// ReasonUpdating: some of the components are being replaced.
	ReasonUpdating = "UpdateInProgress"
	// ReasonInvalidConfiguration: the configuration cannot be used, and the last
	// good one is in force.
	ReasonInvalidConfiguration = "InvalidConfiguration"
	// ReasonUnknownFeatureGate: a feature gate of the configuration has no effect.
	ReasonUnknownFeatureGate = "UnknownFeatureGate"
	// ReasonExistingDeployment: another KubeVirt is the cluster's configuration.
	ReasonExistingDeployment = "ExistingDeployment"
)

// Report is the status of the object k, given which configuration is in force.
// It is k's own status if nothing changed.
func Report(s State, k *vmi.KubeVirt, c Components, now metav1.Time) vmi.KubeVirtStatus {
	out := *k.Status.DeepCopy()
	out.ObservedGeneration = new(k.Generation)
	if s.KubeVirt == nil || s.KubeVirt.UID != k.UID {
		other := "another KubeVirt"
		if s.KubeVirt != nil {
			other = "the KubeVirt " + s.KubeVirt.Namespace + "/" + s.KubeVirt.Name
		}
		why := other + " is older, or as old and first by name, and is the configuration of the cluster; this one has no effect: delete one of them"
		out.Phase, out.DefaultArchitecture, out.ObservedDeploymentConfig = "", "", ""
		out.OperatorVersion, out.ObservedKubeVirtVersion, out.TargetKubeVirtVersion = "", "", ""
		out.OutdatedVirtualMachineInstanceWorkloads = nil
		for _, t := range []vmi.ConditionType{vmi.ConditionAvailable, vmi.ConditionProgressing, vmi.ConditionCreated} {
			out.SetCondition(condition(t, false, ReasonExistingDeployment, why), now)
		}
		out.SetCondition(condition(vmi.ConditionDegraded, true, ReasonExistingDeployment, why), now)
		return out
	}
	out.DefaultArchitecture = cmp.Or(s.Config.Defaults.Architecture, defaults.AMD64)
	out.ObservedDeploymentConfig = text(s.InForce)
	out.OperatorVersion, out.TargetKubeVirtVersion = c.Version, c.Version
	if c.Waiting == "" && c.Updating == "" {
		out.ObservedKubeVirtVersion = c.Version
	}
	if c.Outdated != nil {
		out.OutdatedVirtualMachineInstanceWorkloads = c.Outdated
	}
	out.Phase = vmi.KubeVirtPhaseDeployed
	available := condition(vmi.ConditionAvailable, true, ReasonAllComponentsReady, "All components are ready.")
	if c.Waiting != "" {
		available = condition(vmi.ConditionAvailable, false, ReasonComponentsNotReady, c.Waiting)
		if first := k.Status.Phase; first != vmi.KubeVirtPhaseDeployed {
			out.Phase = vmi.KubeVirtPhaseDeploying
		}
	}
	progressing := condition(vmi.ConditionProgressing, false, ReasonAllComponentsReady, "All components are as they should be.")
	if c.Updating != "" {
		progressing = condition(vmi.ConditionProgressing, true, ReasonUpdating, c.Updating)
	}
	degraded := condition(vmi.ConditionDegraded, false, ReasonAllComponentsReady, "The configuration is in force.")
	if left := leftOut(k); len(left) > 0 {
		degraded = condition(vmi.ConditionDegraded, true, ReasonInvalidConfiguration, "the configuration is in force without these devices of nodes: "+left.ToAggregate().Error())
	}
	if len(s.Faults) > 0 {
		degraded = condition(vmi.ConditionDegraded, true, ReasonInvalidConfiguration, because(s))
	}
	for _, one := range []vmi.Condition{available, progressing, degraded,
		condition(vmi.ConditionCreated, true, ReasonAllResourcesCreated, "All that the components need is there.")} {
		out.SetCondition(one, now)
	}
	if useless := Gates(s.InForce); len(useless) > 0 {
		out.SetCondition(condition(vmi.ConditionGatesWithoutEffect, true, ReasonUnknownFeatureGate, strings.Join(useless, "; ")), now)
	} else {
		out.RemoveCondition(vmi.ConditionGatesWithoutEffect)
	}
	return out
}

// because says what is wrong with the configuration and what is in force
// instead.
func because(s State) string {
	instead := "the last good configuration stays in force: "
	if s.InForce == nil {
		instead = "the default configuration is in force: "
	}
	return instead + s.Faults.ToAggregate().Error()
}

// text is the configuration as JSON, or "" for the default one.
func text(c *vmi.KubeVirtConfiguration) string {
	if c == nil {
		return ""
	}
	b, err := json.Marshal(c)
	if err != nil {
		return "" // it came from JSON
	}
	return string(b)
}

func condition(t vmi.ConditionType, is bool, reason, message string) vmi.Condition {
	c := vmi.Condition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	if is {
		c.Status = corev1.ConditionTrue
	}
	return c
}
