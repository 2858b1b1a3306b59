package images

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path"
	"strings"
)

// moduleIndex is what the guest reads to know its modules; see modules in
// images/demo-guest/init.
type moduleIndex struct {
	text  strings.Builder
	files tree
	// known are the paths of all modules of the kernel by name.
	known map[string]string
	from  tree
}

// collectModules takes kernel modules and what they need out of a system.
func collectModules(system tree, names []string) (*moduleIndex, error) {
	x := &moduleIndex{files: tree{}, known: map[string]string{}, from: system}
	for file := range system {
		if name, ok := strings.CutSuffix(path.Base(file), ".ko"); ok {
			x.known[moduleName(name)] = file
		}
	}
	for _, name := range names {
		if err := x.add(moduleName(name)); err != nil {
			return nil, fmt.Errorf("kernel module %s: %w", name, err)
		}
	}
	return x, nil
}

// moduleName is a module's name as the kernel has it; files have dashes too.
func moduleName(name string) string {
	return strings.ReplaceAll(name, "-", "_")
}

func (x *moduleIndex) add(name string) error {
	target := "/lib/modules/" + name + ".ko"
	if _, ok := x.files[target]; ok {
		return nil
	}
	file, ok := x.known[name]
	if !ok {
		return fmt.Errorf("this kernel does not have it")
	}
	content := x.from[file].Content
	info, err := moduleInfo(content)
	if err != nil {
		return err
	}
	x.files.add(target, node{Mode: 0o644, Content: unsigned(content)})
	var needs []string
	for _, n := range strings.FieldsFunc(strings.Join(info["depends"], ","), func(r rune) bool { return r == ',' }) {
		needs = append(needs, moduleName(n))
	}
	fmt.Fprintln(&x.text, strings.TrimSpace("module "+name+" "+strings.Join(needs, " ")))
	for _, alias := range info["alias"] {
		if !strings.ContainsAny(alias, " \t") {
			fmt.Fprintln(&x.text, "alias", name, alias)
		}
	}
	for _, n := range needs {
		if err := x.add(n); err != nil {
			return fmt.Errorf("needs %s: %w", n, err)
		}
	}
	return nil
}

// moduleInfo reads the notes in a module: NUL-terminated KEY=VALUE.
func moduleInfo(content []byte) (map[string][]string, error) {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	s := f.Section(".modinfo")
	if s == nil {
		return nil, fmt.Errorf("has no .modinfo")
	}
	b, err := s.Data()
	if err != nil {
		return nil, err
	}
	info := map[string][]string{}
	for note := range strings.SplitSeq(string(b), "\x00") {
		if k, v, ok := strings.Cut(note, "="); ok {
			info[k] = append(info[k], v)
		}
	}
	return info, nil
}

// unsigned cuts the signature off a module. The guest's kernel does not ask for
// one, and checking it takes long under emulation.
func unsigned(content []byte) []byte {
	const marker = "~Module signature appended~\n"
	body, ok := bytes.CutSuffix(content, []byte(marker))
	// struct module_signature: 12 bytes, the last 4 the length of what is before it.
	if !ok || len(body) < 12 {
		return content
	}
	length := int(binary.BigEndian.Uint32(body[len(body)-4:])) + 12
	if length > len(body) {
		return content
	}
	return body[:len(body)-length]
}
