package link

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// kernelTypes is where the kernel says how its types are laid out, in the format BTF
// (Documentation/bpf/btf.rst).
const kernelTypes = "/sys/kernel/btf/vmlinux"

var errTypes = errors.New("the kernel's description of its types is not in the format BTF")

// member is where a struct has a member.
type member struct {
	// Bit is counted from the beginning of the struct.
	Bit uint32
}

// at is the byte where it begins, and shift its first bit in that byte.
func (m member) at() int16   { return int16(m.Bit / 8) }
func (m member) shift() byte { return byte(m.Bit % 8) }

// types is a description of types.
type types struct {
	types, names []byte
	// begins is where each type begins, by its number. The first one is void.
	begins []int
}

// The kinds of types, with what follows the 12 bytes that all have: bytes, and bytes
// for each part.
const (
	kindStruct, kindUnion = 4, 5
	typeLength            = 12
	memberLength          = 12
)

var following = map[uint32]struct{ once, each int }{
	1: {once: 4}, 2: {}, 3: {once: 12}, kindStruct: {each: memberLength}, kindUnion: {each: memberLength}, 6: {each: 8}, 7: {}, 8: {}, 9: {},
	10: {}, 11: {}, 12: {}, 13: {each: 8}, 14: {once: 4}, 15: {each: 12}, 16: {}, 17: {once: 4}, 18: {}, 19: {each: 12},
}

// parseTypes reads a description. The error says that it is none.
func parseTypes(b []byte) (types, error) {
	const magic, header = 0xeb9f, 24
	if len(b) < header || binary.NativeEndian.Uint16(b) != magic {
		return types{}, errTypes
	}
	word := func(n int) uint64 { return uint64(binary.NativeEndian.Uint32(b[n:])) }
	part := func(from, length uint64) ([]byte, bool) {
		from += word(4)
		if from > uint64(len(b)) || from+length > uint64(len(b)) {
			return nil, false
		}
		return b[from : from+length], true
	}
	all, ok := part(word(8), word(12))
	names, named := part(word(16), word(20))
	if !ok || !named {
		return types{}, errTypes
	}
	t := types{types: all, names: names, begins: []int{-1}}
	for at := 0; at < len(all); {
		if at+typeLength > len(all) {
			return types{}, errTypes
		}
		t.begins = append(t.begins, at)
		kind, parts := t.kind(at)
		f, ok := following[kind]
		if !ok {
			return types{}, fmt.Errorf("%w: type %d is of the unknown kind %d", errTypes, len(t.begins)-1, kind)
		}
		at += typeLength + f.once + f.each*parts
		if at > len(all) {
			return types{}, errTypes
		}
	}
	return t, nil
}

func (t types) word(at int) uint32 { return binary.NativeEndian.Uint32(t.types[at:]) }

// kind is the kind of the type that begins there, and how many parts it has.
func (t types) kind(at int) (kind uint32, parts int) {
	info := t.word(at + 4)
	return info >> 24 & 0x1f, int(info & 0xffff)
}

// isNamed says that the name of the type or member that begins there is this one.
func (t types) isNamed(at int, name string) bool {
	from := uint64(t.word(at))
	end := from + uint64(len(name))
	return end < uint64(len(t.names)) && string(t.names[from:end]) == name && t.names[end] == 0
}

// member finds a member of a struct, which may be in structs and unions without a name
// in it.
func (t types) member(of, name string) (member, error) {
	for number, at := range t.begins[1:] {
		if kind, _ := t.kind(at); kind == kindStruct && t.isNamed(at, of) {
			if m, ok := t.in(uint32(number+1), name, 8); ok {
				return m, nil
			}
		}
	}
	return member{}, fmt.Errorf("the kernel's struct %s has no member %s", of, name)
}

func (t types) in(number uint32, name string, depth int) (member, bool) {
	if number == 0 || int64(number) >= int64(len(t.begins)) || depth == 0 {
		return member{}, false
	}
	begins := t.begins[number]
	kind, parts := t.kind(begins)
	if kind != kindStruct && kind != kindUnion {
		return member{}, false
	}
	// With bit fields, the length is in the first 8 bits of the place.
	place := ^uint32(0)
	if t.word(begins+4)>>31 == 1 {
		place = 1<<24 - 1
	}
	for n := range parts {
		at := begins + typeLength + n*memberLength
		bit := t.word(at+8) & place
		if t.isNamed(at, name) {
			return member{bit}, true
		}
		if t.isNamed(at, "") {
			if m, ok := t.in(t.word(at+4), name, depth-1); ok {
				return member{bit + m.Bit}, true
			}
		}
	}
	return member{}, false
}
