package vmi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrUnreadable is wrapped by the errors about an object that is stored and that
// the Go type of its kind cannot hold: see [Unreadable].
var ErrUnreadable = errors.New("the stored object cannot be decoded")

// ReasonUnreadableSpec is the reason of [ConditionSynchronized], when False, of a
// VMI that cannot be decoded.
const ReasonUnreadableSpec = "UnreadableSpec"

// UnreadableError is why an object cannot be decoded. It wraps [ErrUnreadable].
//
// +kubebuilder:object:generate=false
type UnreadableError struct {
	// Fields are the first of the fields that cannot be decoded, at least one.
	Fields []UnreadableField `json:"fields"`
	// More is how many there are beside them.
	More int `json:"more,omitempty"`
}

// UnreadableField is a field that cannot be decoded.
//
// +kubebuilder:object:generate=false
type UnreadableField struct {
	// Path is the path of the field, as in spec.domain.cpu.cores. Empty: the path is
	// not known.
	Path string `json:"path,omitempty"`
	// Value is what is stored there, as JSON, cut if it is long.
	Value string `json:"value,omitempty"`
	// Message says what the field must be.
	Message string `json:"message"`
}

// Error names each field, its value and what it must be.
func (e *UnreadableError) Error() string { return ErrUnreadable.Error() + ": " + e.Faults() }

// Faults is the text of the error without its beginning, which is the same for all.
func (e *UnreadableError) Faults() string {
	var all []string
	for _, f := range e.Fields {
		text := f.Message
		if f.Value != "" {
			text = f.Value + ": " + text
		}
		if f.Path != "" {
			text = f.Path + ": " + text
		}
		all = append(all, text)
	}
	if e.More > 0 {
		all = append(all, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(all, "; ")
}

// Unwrap is [ErrUnreadable].
func (e *UnreadableError) Unwrap() error { return ErrUnreadable }

// unreadable is the annotation of an object that could not be decoded. An API
// server accepts no annotation of this name, so none that is stored has it, and an
// object with it cannot be stored by accident: its spec is not what is stored.
const unreadable = "kubevirt.io/unreadable!"

// Unreadable returns why the object could not be decoded whole, as an
// [UnreadableError], or nil if it could.
//
// A client of this module gives an object that its Go type cannot hold, as one with
// a negative number where the type has none, as follows: its metadata and what can
// be decoded of its status are there, and everything else is empty. A copy of it is
// unreadable too. It must not be written as a whole; a patch may name what it
// changes.
func Unreadable(o metav1.Object) error {
	text, ok := o.GetAnnotations()[unreadable]
	if !ok {
		return nil
	}
	e := &UnreadableError{}
	if err := json.Unmarshal([]byte(text), e); err != nil || len(e.Fields) == 0 {
		e.Fields = []UnreadableField{{Message: text}}
	}
	return e
}

// UnreadableFinding is the error of [Unreadable] as the condition and the event of a
// VMI have it. It is not to be called for one that could be decoded.
func UnreadableFinding(v *VirtualMachineInstance) Finding {
	f := Finding{Reason: ReasonUnreadableSpec}
	var e *UnreadableError
	if errors.As(Unreadable(v), &e) {
		f.Message = e.Faults() + ": what is stored cannot be decoded, so that no guest is started by it and a guest that runs is not changed; " +
			"delete the VMI and create it anew, or install a version of Podvisor that can decode it"
	}
	return f
}

// SetUnreadable marks the object as one that could not be decoded whole, for
// [Unreadable]. Clients do so; the object is changed.
func SetUnreadable(o metav1.Object, why *UnreadableError) {
	text, err := json.Marshal(why)
	if err != nil {
		text = []byte(why.Faults())
	}
	all := map[string]string{unreadable: string(text)}
	for k, v := range o.GetAnnotations() {
		if k != unreadable {
			all[k] = v
		}
	}
	o.SetAnnotations(all)
}
