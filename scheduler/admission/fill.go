package admission

import "github.com/podvisor/podvisor/vmi/served"

// fill adds to the raw object what is in done and not in v: see [served.Fields.Fill].
func fill(raw map[string]any, v, done any, unserved served.Fields) error {
	return unserved.Fill(raw, v, done)
}
