package domain

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// element is an element of XML with all that is in it, known here or not. Text beside
// children, and comments, are left out: libvirt writes none.
type element struct {
	name     string // with its prefix
	attrs    []xml.Attr
	text     string
	children []*element
}

// parseXML reads a document. Prefixes of names are kept as they are.
func parseXML(s string) (*element, error) {
	d := xml.NewDecoder(strings.NewReader(s))
	top := &element{}
	open := []*element{top}
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		last := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: prefixed(token.Name), attrs: slices.Clone(token.Attr)}
			last.children = append(last.children, e)
			open = append(open, e)
		case xml.EndElement:
			if len(open) == 1 || last.name != prefixed(token.Name) {
				return nil, fmt.Errorf("element %s ends and has not begun", prefixed(token.Name))
			}
			open = open[:len(open)-1]
		case xml.CharData:
			last.text += string(token)
		}
	}
	if len(open) != 1 || len(top.children) != 1 {
		return nil, errors.New("it is not one whole element")
	}
	return top.children[0], nil
}

func prefixed(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

// String is the element as XML.
func (e *element) String() string {
	var b strings.Builder
	e.write(&b, "")
	return b.String()
}

func (e *element) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s<%s", indent, e.name)
	for _, a := range e.attrs {
		fmt.Fprintf(b, " %s=\"%s\"", prefixed(a.Name), escaped(a.Value))
	}
	switch {
	case len(e.children) > 0:
		b.WriteString(">\n")
		for _, c := range e.children {
			c.write(b, indent+"  ")
		}
		fmt.Fprintf(b, "%s</%s>\n", indent, e.name)
	case e.text != "":
		fmt.Fprintf(b, ">%s</%s>\n", escaped(e.text), e.name)
	default:
		b.WriteString("/>\n")
	}
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // to memory
	return b.String()
}

// all are the elements at a path of names below e.
func (e *element) all(path ...string) []*element {
	at := []*element{e}
	for _, name := range path {
		var next []*element
		for _, e := range at {
			for _, c := range e.children {
				if c.name == name {
					next = append(next, c)
				}
			}
		}
		at = next
	}
	return at
}

// first is the first element at a path. It is empty if there is none.
func (e *element) first(path ...string) *element {
	if all := e.all(path...); len(all) > 0 {
		return all[0]
	}
	return &element{}
}

// attr is the value of an attribute. Empty: there is none.
func (e *element) attr(name string) string {
	for _, a := range e.attrs {
		if prefixed(a.Name) == name {
			return a.Value
		}
	}
	return ""
}

// set gives an attribute a value. Empty: there is no such attribute.
func (e *element) set(name, value string) {
	i := slices.IndexFunc(e.attrs, func(a xml.Attr) bool { return prefixed(a.Name) == name })
	switch {
	case value == "" && i >= 0:
		e.attrs = slices.Delete(e.attrs, i, i+1)
	case value == "":
	case i >= 0:
		e.attrs[i].Value = value
	default:
		e.attrs = append(e.attrs, xml.Attr{Name: xml.Name{Local: name}, Value: value})
	}
}

// take replaces the children of these names by those of another element.
func (e *element) take(from *element, names ...string) {
	for _, name := range names {
		at := slices.IndexFunc(e.children, func(c *element) bool { return c.name == name })
		e.children = slices.DeleteFunc(e.children, func(c *element) bool { return c.name == name })
		if at < 0 {
			at = len(e.children)
		}
		e.children = slices.Insert(e.children, at, from.all(name)...)
	}
}
