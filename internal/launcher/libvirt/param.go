package libvirt

import golibvirt "github.com/digitalocean/go-libvirt"

// params are libvirt's parameters with types, by their names.
type params map[string]any

func newParams(all []golibvirt.TypedParam) params {
	p := params{}
	for _, t := range all {
		p[t.Field] = t.Value.I
	}
	return p
}

// number is the parameter as a number, whatever integer it is. 0: there is none.
func (p params) number(name string) int64 {
	switch n := p[name].(type) {
	case int32:
		return int64(n)
	case uint32:
		return int64(n)
	case int64:
		return n
	case uint64:
		return int64(n)
	default:
		return 0
	}
}

// kibibytes is the parameter, a number of KiB, in bytes.
func (p params) kibibytes(name string) int64 { return p.number(name) << 10 }

// text is the parameter as a text. Empty: there is none.
func (p params) text(name string) string { s, _ := p[name].(string); return s }

func param(name, value string) golibvirt.TypedParam {
	return golibvirt.TypedParam{Field: name, Value: *golibvirt.NewTypedParamValueString(value)}
}
