package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Affinity says near which pods and on which nodes a machine runs. It means what
// the field of the same name means in a pod.
type Affinity struct {
	// NodeAffinity says which nodes the machine may run on, and which it should
	// rather run on.
	// +optional
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty"`

	// PodAffinity says which pods the machine must run near, and which it should
	// rather run near.
	// +optional
	PodAffinity *PodAffinity `json:"podAffinity,omitempty"`

	// PodAntiAffinity says which pods the machine must run away from, and which
	// it should rather run away from.
	// +optional
	PodAntiAffinity *PodAntiAffinity `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity chooses among nodes by their labels. It is looked at when the
// machine gets its node, and never again.
type NodeAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution are the nodes that the
	// machine may run on. If there is none, it waits for one.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// PreferredDuringSchedulingIgnoredDuringExecution are the nodes that the
	// machine should rather run on. A node scores the sum of the weights of the
	// terms that it meets.
	// +optional
	// +listType=atomic
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeSelector is a choice of nodes: those that meet at least one of the terms.
//
// +structType=atomic
type NodeSelector struct {
	// NodeSelectorTerms are the terms, of which a node has to meet one.
	// +listType=atomic
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms"`
}

// NodeSelectorTerm is met by nodes that meet all of its requirements. A term
// without any is met by no node.
//
// +structType=atomic
type NodeSelectorTerm struct {
	// MatchExpressions are requirements of the node's labels.
	// +optional
	// +listType=atomic
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty"`

	// MatchFields are requirements of the node's fields. The only field is
	// metadata.name.
	// +optional
	// +listType=atomic
	MatchFields []NodeSelectorRequirement `json:"matchFields,omitempty"`
}

// NodeSelectorRequirement is a requirement of one label or field of a node.
type NodeSelectorRequirement struct {
	// Key is the label, or the field.
	Key string `json:"key"`

	// Operator compares the node's value with the values here: In, NotIn,
	// Exists, DoesNotExist, Gt or Lt.
	Operator NodeSelectorOperator `json:"operator"`

	// Values are at least one for In and NotIn, none for Exists and
	// DoesNotExist, and one whole number for Gt and Lt.
	// +optional
	// +listType=atomic
	Values []string `json:"values,omitempty"`
}

// NodeSelectorOperator compares a node's value with given ones.
type NodeSelectorOperator string

// The comparisons of a node's value.
const (
	NodeSelectorIn           NodeSelectorOperator = "In"
	NodeSelectorNotIn        NodeSelectorOperator = "NotIn"
	NodeSelectorExists       NodeSelectorOperator = "Exists"
	NodeSelectorDoesNotExist NodeSelectorOperator = "DoesNotExist"
	NodeSelectorGreater      NodeSelectorOperator = "Gt"
	NodeSelectorLess         NodeSelectorOperator = "Lt"
)

// PreferredSchedulingTerm is a choice of nodes with its weight.
type PreferredSchedulingTerm struct {
	// Weight is what a node of this choice scores, from 1 to 100.
	Weight int32 `json:"weight"`

	// Preference is the choice.
	Preference NodeSelectorTerm `json:"preference"`
}

// PodAffinity are pods that a machine runs near.
type PodAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution are pods of which there
	// must be one near the machine, for each term.
	// +optional
	// +listType=atomic
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// PreferredDuringSchedulingIgnoredDuringExecution are pods that the machine
	// should rather be near. A node scores the sum of the weights of the terms
	// that it meets.
	// +optional
	// +listType=atomic
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// PodAntiAffinity are pods that a machine runs away from.
type PodAntiAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution are pods of which there
	// must be none near the machine.
	// +optional
	// +listType=atomic
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// PreferredDuringSchedulingIgnoredDuringExecution are pods that the machine
	// should rather be away from. A node loses the sum of the weights of the
	// terms that it meets.
	// +optional
	// +listType=atomic
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// PodAffinityTerm is a choice of pods and how near to them is near.
type PodAffinityTerm struct {
	// LabelSelector chooses the pods by their labels. None chooses no pod.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Namespaces are the namespaces of the pods, beside those of
	// namespaceSelector. Default: the machine's own, if there is no selector
	// either.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`

	// TopologyKey is the label of nodes that says what near is: all nodes with
	// the same value are, for example topology.kubernetes.io/zone.
	TopologyKey string `json:"topologyKey"`

	// NamespaceSelector chooses the namespaces of the pods by their labels; the
	// empty selector chooses all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// MatchLabelKeys are labels in which the pods equal the machine's pod, in
	// addition to labelSelector, which must not name them.
	// +optional
	// +listType=atomic
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`

	// MismatchLabelKeys are labels in which the pods differ from the machine's
	// pod, in addition to labelSelector, which must not name them.
	// +optional
	// +listType=atomic
	MismatchLabelKeys []string `json:"mismatchLabelKeys,omitempty"`
}

// WeightedPodAffinityTerm is a choice of pods with its weight.
type WeightedPodAffinityTerm struct {
	// Weight is what a node near such a pod scores, from 1 to 100.
	Weight int32 `json:"weight"`

	// PodAffinityTerm is the choice.
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm"`
}
