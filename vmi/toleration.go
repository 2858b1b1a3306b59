package vmi

// Toleration lets a machine run on nodes with matching taints. It means what the
// field of the same name means in a pod.
type Toleration struct {
	// Key is the taint's key. Default: every key, if the operator is Exists.
	// +optional
	Key string `json:"key,omitempty"`

	// Operator compares the taint's value with the value here: Equal, or Exists,
	// which takes every value. Lt and Gt compare whole numbers, in clusters that
	// have the feature. Default: Equal.
	// +optional
	Operator TolerationOperator `json:"operator,omitempty"`

	// Value is what the taint's value is compared with. It is empty if the
	// operator is Exists.
	// +optional
	Value string `json:"value,omitempty"`

	// Effect is the taint's effect: NoSchedule, PreferNoSchedule or NoExecute.
	// Default: every effect.
	// +optional
	Effect TaintEffect `json:"effect,omitempty"`

	// TolerationSeconds is how long the machine stays on a node that gets a taint
	// with the effect NoExecute, in seconds; 0 and less are no time. Default: for
	// ever.
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TolerationOperator compares a taint's value with a given one.
type TolerationOperator string

// The comparisons of a taint's value. The zero value stands for Equal.
const (
	TolerationEqual   TolerationOperator = "Equal"
	TolerationExists  TolerationOperator = "Exists"
	TolerationLess    TolerationOperator = "Lt"
	TolerationGreater TolerationOperator = "Gt"
)

// TaintEffect is what a taint does to pods that do not tolerate it.
type TaintEffect string

// The effects of a taint.
const (
	TaintNoSchedule       TaintEffect = "NoSchedule"
	TaintPreferNoSchedule TaintEffect = "PreferNoSchedule"
	TaintNoExecute        TaintEffect = "NoExecute"
)
