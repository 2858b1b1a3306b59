package bounds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The bounds of an object of any kind.
const (
	// MaxBytes is the size of its JSON. An etcd stores no larger object, unless it is
	// configured to.
	MaxBytes = 3 << 19
	// MaxValues is how many values its JSON has in all, with those of its metadata.
	MaxValues = 20_000
	// MaxDepth is how many lists and objects are inside one another.
	MaxDepth = 64
	// MaxString is the length of a string in bytes, as JSON. The annotations of an
	// object are no longer in all.
	MaxString = 256 << 10
)

// list is what is known of a value by its place in an object of a kind: a list, a map or an
// object. nil: nothing.
type list struct {
	// max is how many elements the list has at most, or entries the map. 0: any.
	max int
	// below are the elements of the list, or the values of the map.
	below *list
	// fields are the fields of the object.
	fields map[string]*list
}

// Fault returns the first bound that the JSON of an object of the kind exceeds, or
// nil. Of a kind that is not in the tables only the bounds of all kinds are known.
func Fault(kind string, data []byte) *field.Error {
	s := scanner{data: data, path: make([]step, 0, 16)} // most are no deeper
	if s.value(lists[kind]); s.fault != nil {
		return s.fault
	}
	if len(data) > MaxBytes {
		return fault(field.ErrorTypeTooLong, nil, fmt.Sprintf("has %d bytes and must have at most %d", len(data), MaxBytes))
	}
	return nil
}

func fault(kind field.ErrorType, at *field.Path, detail string) *field.Error {
	e := &field.Error{Type: kind, Field: "object", BadValue: field.OmitValueType{}, Detail: detail}
	if at != nil {
		e.Field = at.String()
	}
	return e
}
