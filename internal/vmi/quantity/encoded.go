package quantity

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MustBe is what the message of a quantity out of bounds says after its text.
const MustBe = "must be a quantity of at most 32 characters with an exponent from -19 to 19, such as 2, 500m or 512Mi"

// FaultsIn returns the quantities in data whose text is out of bounds, or nothing.
// data is the JSON of an object of the type of o, which is a pointer to a struct
// and not changed. There are at most [MaxFaults].
//
// What it does not judge is left to the decoder: text that is no quantity at all,
// and data that is no JSON, which it reads as far as it can. Unless there is a
// fault, data is read once and nothing is allocated.
func FaultsIn(o any, data []byte) field.ErrorList {
	if !Suspicious(data) {
		return nil
	}
	r := reader{Decoder: json.NewDecoder(bytes.NewReader(data))}
	r.UseNumber()
	r.value(nil, reflect.TypeOf(o))
	return r.faults
}

// Suspicious says that a string or a number of the JSON, wherever it is, would be a
// quantity out of bounds: then data is not to be decoded before [FaultsIn] has said
// that it is none. It reads data once and allocates nothing.
func Suspicious(data []byte) bool {
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '"':
			end := i + 1
			for end < len(data) && data[end] != '"' {
				if data[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(data))
			if Excessive(data[i+1 : end]) {
				return true
			}
			i = end + 1
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(data) && numeric(data[end]) {
				end++
			}
			if Excessive(data[i:end]) {
				return true
			}
			i = end
		default:
			i++
		}
	}
	return false
}

// Excessive says that the text is one that resource.ParseQuantity would look at
// for longer, and is out of bounds. It need not be a quantity.
func Excessive(text []byte) bool {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || !numeric(text[0]) {
		return false
	}
	for _, c := range text {
		if !numeric(c) {
			return false
		}
	}
	if len(text) > MaxLength {
		return true
	}
	// The digits after the last letter are the exponent.
	e := bytes.LastIndexAny(text, "eE")
	digits := bytes.TrimLeft(text[e+1:], "+-")
	return e >= 0 && len(digits) > 1 && len(bytes.Trim(digits, "0123456789")) == 0 && !pattern.Match(text)
}

// numeric says that quantities have the character.
func numeric(c byte) bool {
	return c >= '0' && c <= '9' || strings.IndexByte("+-.eEinumkKMGTP", c) >= 0
}

// reader reads JSON together with the Go type that it is decoded to.
type reader struct {
	*json.Decoder
	faults field.ErrorList
}

// value reads a value of the type, which is nil if the decoder drops the value. It
// is false when there is nothing more to read.
func (r *reader) value(at *field.Path, t reflect.Type) bool {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || !compound(t) {
		// The depth of what has no type is the decoder's to limit.
		var dropped json.RawMessage
		return r.Decode(&dropped) == nil
	}
	token, err := r.Token()
	if err != nil {
		return false
	}
	switch token := token.(type) {
	case json.Delim:
		return r.parts(at, t, token == '{')
	case string:
		r.leaf(at, t, token)
	case json.Number:
		r.leaf(at, t, token.String())
	}
	return len(r.faults) < MaxFaults
}

// parts reads what is in an object or a list.
func (r *reader) parts(at *field.Path, t reflect.Type, object bool) bool {
	for i := 0; r.More(); i++ {
		here, part := at.Index(i), reflect.Type(nil)
		if t.Kind() == reflect.Slice {
			part = t.Elem()
		}
		if object {
			name, err := r.Token()
			if err != nil {
				return false
			}
			here, part = member(at, t, name.(string))
		}
		if !r.value(here, part) {
			return false
		}
	}
	_, err := r.Token()
	return err == nil
}

func (r *reader) leaf(at *field.Path, t reflect.Type, text string) {
	if t == reflect.TypeFor[resource.Quantity]() && Excessive([]byte(text)) {
		r.faults = append(r.faults, &field.Error{Type: field.ErrorTypeInvalid, Field: at.String(), BadValue: field.OmitValueType{}, Detail: shown(text) + " " + MustBe})
	}
}

// member is the path and the type of the part of an object that has this name. As
// the decoder does, it takes letters of either case.
func member(at *field.Path, t reflect.Type, name string) (*field.Path, reflect.Type) {
	if t.Kind() == reflect.Map {
		return at.Child(name), t.Elem()
	}
	return at.Child(name), fieldNamed(t, name)
}

// fieldNamed is the type of the field of the struct with that name in JSON, nil if
// there is none.
func fieldNamed(t reflect.Type, name string) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		switch own := nameOf(f); {
		case own == "":
			if inlined := fieldNamed(f.Type, name); inlined != nil {
				return inlined
			}
		case strings.EqualFold(own, name):
			return f.Type
		}
	}
	return nil
}
