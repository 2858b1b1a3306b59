package manifest

import (
	"bytes"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
)

// renewed is the document with the version and the kind of today in place of those of
// before kubevirt.io/v1, so that the rest of it is checked too, and what is wrong with
// them. Other documents are as they were.
func (d document) renewed() (document, []Fault) {
	now := vmi.GroupVersion.String()
	write, kind := served.FormerVersion(d.apiVersion), ""
	if write != "" || d.apiVersion == now {
		kind = served.FormerKind(d.kind)
	}
	if d.fault != "" || write == "" && kind == "" {
		return d, nil
	}
	var faults []Fault
	if write != "" {
		faults = append(faults, Fault{"apiVersion", field.ErrorTypeNotSupported, d.apiVersion + " cannot be written any more: " + write})
		d.data = bytes.ReplaceAll(d.data, []byte(d.apiVersion), []byte(now))
	}
	if kind != "" {
		faults = append(faults, Fault{"kind", field.ErrorTypeNotSupported, d.kind + " is a kind of before " + now + ": write kind: " + kind})
		d.data = bytes.ReplaceAll(d.data, []byte(d.kind), []byte(kind))
		d.kind = kind
	}
	again := header(d.data)
	if len(again) != 1 || again[0].apiVersion != now || again[0].kind != d.kind {
		d.apiVersion = now // it is written in a way that was not found
		return d, faults
	}
	return again[0], faults
}
