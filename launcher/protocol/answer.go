package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode"
)

// A launcher's answer reaches a user. These are the limits of what is in it.
const (
	maxDepth   = 8
	maxMembers = 4096
)

// errAnswer is the error of an answer that is beyond the limits. It repeats nothing of it.
var errAnswer = errors.New("the launcher's answer is no JSON of a form that is passed on")

// SanitizeAnswer returns the JSON with every text in it shortened, and a space for what a
// terminal would not print as it is. What is no JSON, is nested deeper than 8 levels or
// has lists or objects of more than 4096 members is an error.
func SanitizeAnswer(answer json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return nil, errAnswer
	}
	v, ok := sanitizeValue(v, 0)
	if !ok {
		return nil, errAnswer
	}
	return json.Marshal(v)
}

// sanitizeValue returns a value with its texts shortened, and whether it is within the
// limits.
func sanitizeValue(v any, depth int) (_ any, ok bool) {
	if depth > maxDepth {
		return nil, false
	}
	switch v := v.(type) {
	case string:
		return message(v), true
	case []any:
		for i := range v {
			if v[i], ok = sanitizeValue(v[i], depth+1); !ok || i >= maxMembers {
				return nil, false
			}
		}
	case map[string]any:
		for k := range v {
			if len(k) > maxWord || len(v) > maxMembers || !isName(k) {
				return nil, false
			}
			if v[k], ok = sanitizeValue(v[k], depth+1); !ok {
				return nil, false
			}
		}
	}
	return v, true
}

// isName says that a text can be the name of a JSON field.
func isName(s string) bool {
	for _, r := range s {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
