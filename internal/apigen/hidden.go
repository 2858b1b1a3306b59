package main

import "github.com/podvisor/podvisor/vmi/served"

// hidden is a field of a spec that is not served.
type hidden struct {
	in      node   // the schema of the struct that has it
	name    string // of the field
	kind    string // the type of its schema
	items   string // of an array: that of its elements
	why     string
	refused bool
}

// refuseHidden puts the fields that are not served back into the schema, each with a rule
// that refuses it and says why. An API server drops what its schema does not have before
// any webhook, and reports that to clients that ask for strict validation alone: the others
// would get something else than they wrote.
func (p *pruner) refuseHidden() {
	for _, h := range p.hidden {
		f := served.Field{Path: h.name, Why: h.why, Refused: h.refused}
		s := node{"description": "Not served: " + h.why + ".", "type": h.kind, validations: refuse(f.Sentence())}
		switch h.kind {
		case "object":
			s["x-kubernetes-preserve-unknown-fields"] = true
		case "array":
			s["items"] = node{"type": h.items}
			if h.items == "object" {
				s["items"] = node{"type": h.items, "x-kubernetes-preserve-unknown-fields": true}
			}
			s["maxItems"] = mostItems
			s["x-kubernetes-list-type"] = "atomic"
		case "integer":
			s["format"] = "int64"
		case "string":
			s["maxLength"] = 253
		}
		h.in.child("properties")[h.name] = s
	}
	p.hidden = nil
}
