package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TopologySpreadConstraint says how evenly pods are spread over zones, nodes or
// the like. It means what the field of the same name means in a pod.
type TopologySpreadConstraint struct {
	// MaxSkew is how many more of the pods one zone may have than the zone with
	// the fewest. At least 1.
	MaxSkew int32 `json:"maxSkew"`

	// TopologyKey is the label of nodes that makes the zones: all nodes with the
	// same value are one, for example kubernetes.io/hostname.
	TopologyKey string `json:"topologyKey"`

	// WhenUnsatisfiable is what happens if no node keeps the constraint:
	// DoNotSchedule lets the machine wait, ScheduleAnyway takes the node that
	// breaks it least.
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable"`

	// LabelSelector chooses the pods that are counted, in the machine's
	// namespace.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// MinDomains is how many zones there should be. As long as there are fewer,
	// the zone with the fewest pods is taken to have none. It needs
	// DoNotSchedule. Default: 1.
	// +optional
	MinDomains *int32 `json:"minDomains,omitempty"`

	// NodeAffinityPolicy says whether only nodes that the machine's affinity and
	// nodeSelector allow are looked at: Honor or Ignore. Default: Honor.
	// +optional
	NodeAffinityPolicy *NodeInclusionPolicy `json:"nodeAffinityPolicy,omitempty"`

	// NodeTaintsPolicy says whether only nodes whose taints the machine
	// tolerates are looked at: Honor or Ignore. Default: Ignore.
	// +optional
	NodeTaintsPolicy *NodeInclusionPolicy `json:"nodeTaintsPolicy,omitempty"`

	// MatchLabelKeys are labels in which the pods equal the machine's pod, in
	// addition to labelSelector, which must not name them.
	// +optional
	// +listType=atomic
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`
}

// UnsatisfiableConstraintAction is what happens if a constraint cannot be kept.
type UnsatisfiableConstraintAction string

// What happens if a constraint cannot be kept.
const (
	DoNotSchedule  UnsatisfiableConstraintAction = "DoNotSchedule"
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// NodeInclusionPolicy says whether nodes that the machine cannot run on are left
// out.
type NodeInclusionPolicy string

// What is done about nodes that the machine cannot run on.
const (
	NodeInclusionHonor  NodeInclusionPolicy = "Honor"
	NodeInclusionIgnore NodeInclusionPolicy = "Ignore"
)
