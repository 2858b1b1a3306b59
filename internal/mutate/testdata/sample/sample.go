// Package sample is a type with tests of it, one of which sees too little.
package sample

// Sample has two fields.
type Sample struct {
	Seen  string `json:"seen,omitempty"`
	Other string `json:"other,omitempty"`
}

// DeepCopyInto copies it.
func (in *Sample) DeepCopyInto(out *Sample) {
	*out = *in
}
