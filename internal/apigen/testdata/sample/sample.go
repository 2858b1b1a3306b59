// Package sample has one of everything that apigen reads.
package sample

import other "example.com/other"

// Thing is a kind.
//
// +podvisor:exactlyOne:of=a;b;c,message="a thing has exactly one of"
// +podvisor:atMostOne:of=a;c,message="a thing has at most one of"
type Thing struct {
	Source `json:",inline"`

	// Size has an enumeration.
	Size Size `json:"size,omitempty"`

	// Parts are structs.
	Parts []Part `json:"parts,omitempty"`
}

// Source is inlined.
type Source struct {
	A *Part  `json:"a,omitempty"`
	B string `json:"b,omitempty"`
	// +podvisor:unserved=no code makes it
	C *Part `json:"c,omitempty"`
	// +podvisor:refused=take a
	D *Part `json:"d,omitempty"`
}

// Part is a struct.
type Part struct {
	Name string `json:"name"`
	// +podvisor:unserved=no code makes it
	Later string `json:"later"`

	// Port is of another package.
	//
	// +podvisor:unserved:target.name=no code reads it
	// +podvisor:refused:node=take target
	Port *other.Port `json:"port,omitempty"`
}

// Gate has the fields of a Port.
type Gate struct {
	// +podvisor:unserved:target.name=no code reads it
	// +podvisor:refused:node=take target
	other.Port `json:",inline"`

	Open bool `json:"open,omitempty"`
}

// Size is an enumeration.
//
// +podvisor:enum
type Size string

const (
	Small Size = "small"
	Large Size = "large"
	// +podvisor:unserved=nothing is so large
	Huge Size = "huge"
)
