package images

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// hollowOut replaces libraries by ones that only look like them.
func hollowOut(system tree, list []Hollow) error {
	for _, h := range list {
		file, ok := findLibrary(system, h.Library)
		if !ok {
			return fmt.Errorf("library %s, to be hollowed out, is not in the packages", h.Library)
		}
		real, _ := system.resolve(file)
		body, err := h.body()
		if err != nil {
			return err
		}
		content, err := hollow(system[real].Content, body, h.Data == "")
		if err != nil {
			return fmt.Errorf("hollow out %s: %w", h.Library, err)
		}
		system[real] = node{Mode: system[real].Mode, Content: content}
	}
	return nil
}

// body is what all symbols of the library are: a function that returns a value, or
// the data.
func (h Hollow) body() ([]byte, error) {
	switch h.Data {
	case "":
		// mov eax, VALUE; cdqe; ret: right for int, and as pointer for 0.
		code := binary.LittleEndian.AppendUint32([]byte{0xb8}, uint32(h.Returns))
		return append(code, 0x48, 0x98, 0xc3), nil
	case "icu":
		return emptyICUData(), nil
	}
	return nil, fmt.Errorf("hollow library %s: data %q is not known", h.Library, h.Data)
}

// emptyICUData is a table of contents of ICU's common data format, version 1, with
// no entries, as ICU's own library without data has it.
func emptyICUData() []byte {
	b := []byte{
		32, 0, // size of the header
		0xda, 0x27, // magic
		20, 0, 0, 0, // size of the following; reserved
		0, 0, 2, 0, // little endian, ASCII, bytes per UChar; reserved
		'T', 'o', 'C', 'P', 1, 0, 0, 0, // format and its version
		0, 0, 0, 0, // version of the data
	}
	return append(b, make([]byte, 64)...) // padding of the header, number of entries
}

// A hollow library is the beginning of the original, in which the linker has put
// the tables of names, with all symbols moved to one body behind them:
//
//	0        ELF header, program headers, names, hashes, versions   r
//	+4 KiB   the body                                               r-x
//	+4 KiB   the dynamic section                                    rw-
//
// It needs no other library, and has no relocations and no constructors.
const hollowPage = 0x1000

// hollow makes a hollow library of a library.
func hollow(original, body []byte, code bool) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(original))
	if err != nil {
		return nil, err
	}
	if f.Machine != elf.EM_X86_64 || f.Type != elf.ET_DYN {
		return nil, fmt.Errorf("is not a library for x86-64")
	}
	end, err := namesEnd(f, len(original))
	if err != nil {
		return nil, err
	}
	bodyAt := (end + hollowPage - 1) / hollowPage * hollowPage
	dynamicAt := bodyAt + hollowPage
	out := make([]byte, dynamicAt)
	copy(out, original[:end])
	copy(out[bodyAt:], body)
	if err := moveSymbols(out, f, bodyAt, uint64(len(body))); err != nil {
		return nil, err
	}
	dynamic, err := hollowDynamic(f)
	if err != nil {
		return nil, err
	}
	out = append(out, dynamic...)
	flags := elf.PF_R
	if code {
		flags |= elf.PF_X
	}
	return writeHeader(out, []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Filesz: end, Memsz: end, Align: hollowPage},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(flags), Off: bodyAt, Vaddr: bodyAt, Paddr: bodyAt,
			Filesz: uint64(len(body)), Memsz: uint64(len(body)), Align: hollowPage},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Off: dynamicAt, Vaddr: dynamicAt, Paddr: dynamicAt,
			Filesz: uint64(len(dynamic)), Memsz: uint64(len(dynamic)), Align: hollowPage},
		{Type: uint32(elf.PT_DYNAMIC), Flags: uint32(elf.PF_R | elf.PF_W), Off: dynamicAt, Vaddr: dynamicAt, Paddr: dynamicAt,
			Filesz: uint64(len(dynamic)), Memsz: uint64(len(dynamic)), Align: 8},
		{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W), Align: 16},
	})
}

// nameSections are the sections that are kept, with the tags of the dynamic
// section that point to them.
var nameSections = []struct {
	name string
	tag  elf.DynTag
}{
	{".hash", elf.DT_HASH}, {".gnu.hash", elf.DT_GNU_HASH}, {".dynsym", elf.DT_SYMTAB}, {".dynstr", elf.DT_STRTAB},
	{".gnu.version", elf.DT_VERSYM}, {".gnu.version_d", elf.DT_VERDEF},
}

// namesEnd returns where the sections with names end.
func namesEnd(f *elf.File, size int) (uint64, error) {
	var end uint64
	for _, kept := range nameSections {
		s := f.Section(kept.name)
		if s == nil {
			continue
		}
		if s.Addr != s.Offset {
			return 0, fmt.Errorf("section %s is not in the first segment", kept.name)
		}
		if s.Size > uint64(size) || s.Offset > uint64(size)-s.Size {
			return 0, fmt.Errorf("section %s is beyond the end of the file", kept.name)
		}
		end = max(end, s.Offset+s.Size)
	}
	if f.Section(".dynsym") == nil || f.Section(".dynstr") == nil || f.Section(".gnu.hash") == nil && f.Section(".hash") == nil {
		return 0, fmt.Errorf("has no symbols")
	}
	return end, nil
}

// moveSymbols lets all defined symbols be the body.
func moveSymbols(out []byte, f *elf.File, at, size uint64) error {
	table := f.Section(".dynsym")
	for off := table.Offset; off+elf.Sym64Size <= table.Offset+table.Size; off += elf.Sym64Size {
		var s elf.Sym64
		if _, err := binary.Decode(out[off:], binary.LittleEndian, &s); err != nil {
			return err
		}
		index := elf.SectionIndex(s.Shndx)
		// Symbols that name a version have an absolute value of 0 and stay.
		if index == elf.SHN_UNDEF || index == elf.SHN_ABS {
			continue
		}
		if elf.ST_TYPE(s.Info) == elf.STT_TLS {
			return fmt.Errorf("has variables of threads")
		}
		s.Value, s.Size = at, size
		if _, err := binary.Encode(out[off:], binary.LittleEndian, &s); err != nil {
			return err
		}
	}
	return nil
}

func hollowDynamic(f *elf.File) ([]byte, error) {
	var b []byte
	put := func(tag elf.DynTag, value uint64) {
		b = binary.LittleEndian.AppendUint64(b, uint64(tag))
		b = binary.LittleEndian.AppendUint64(b, value)
	}
	for _, tag := range []elf.DynTag{elf.DT_SONAME, elf.DT_VERDEFNUM} {
		values, err := f.DynValue(tag)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			put(tag, values[0])
		}
	}
	for _, kept := range nameSections {
		if s := f.Section(kept.name); s != nil {
			put(kept.tag, s.Addr)
		}
	}
	put(elf.DT_STRSZ, f.Section(".dynstr").Size)
	put(elf.DT_SYMENT, elf.Sym64Size)
	put(elf.DT_NULL, 0)
	return b, nil
}

// writeHeader writes the ELF header and the program headers over those of the
// original, which had at least as many.
func writeHeader(out []byte, progs []elf.Prog64) ([]byte, error) {
	var h elf.Header64
	if _, err := binary.Decode(out, binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	if int(h.Phnum) < len(progs) {
		return nil, fmt.Errorf("has room for %d program headers only", h.Phnum)
	}
	h.Phnum, h.Entry = uint16(len(progs)), 0
	h.Shoff, h.Shnum, h.Shstrndx = 0, 0, 0
	if _, err := binary.Encode(out, binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	if size := uint64(len(progs)) * uint64(h.Phentsize); h.Phoff > hollowPage || h.Phoff+size > uint64(len(out)) {
		return nil, fmt.Errorf("has its program headers far from the beginning")
	}
	for i, p := range progs {
		if _, err := binary.Encode(out[h.Phoff+uint64(i)*uint64(h.Phentsize):], binary.LittleEndian, &p); err != nil {
			return nil, err
		}
	}
	return out, nil
}
