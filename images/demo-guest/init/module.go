package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// modules knows the kernel modules of the image. The index is made with the
// image; its lines are
//
//	module NAME [DEPENDENCY...]
//	alias NAME PATTERN
type modules struct {
	mu     sync.Mutex
	dir    string
	needs  map[string][]string
	alias  []modulesAlias
	loaded map[string]bool
}

type modulesAlias struct{ pattern, name string }

func openModules(index string) (*modules, error) {
	m := &modules{dir: filepath.Dir(index), needs: map[string][]string{}, loaded: map[string]bool{}}
	text, err := os.ReadFile(index)
	if err != nil {
		return m, err
	}
	m.parse(string(text))
	return m, nil
}

func (m *modules) parse(index string) {
	for line := range strings.Lines(index) {
		switch f := strings.Fields(line); {
		case len(f) >= 2 && f[0] == "module":
			m.needs[f[1]] = f[2:]
		case len(f) == 3 && f[0] == "alias":
			m.alias = append(m.alias, modulesAlias{pattern: f[2], name: f[1]})
		}
	}
}

// match returns the modules for a device.
func (m *modules) match(modalias string) []string {
	var names []string
	for _, a := range m.alias {
		// A slash never occurs in these names, so path.Match is fnmatch.
		if ok, _ := path.Match(a.pattern, modalias); ok {
			names = append(names, a.name)
		}
	}
	return names
}

// loadForDevices loads the drivers of all devices there are, and of those that
// appear because of it, until nothing new appears.
func (m *modules) loadForDevices() {
	// Input devices carry no alias that would ask for evdev.
	if err := m.load("evdev"); err != nil {
		say("load module: %v", err)
	}
	seen := map[string]bool{}
	for again := true; again; {
		again = false
		files, _ := filepath.Glob("/sys/bus/*/devices/*/modalias")
		for _, file := range files {
			b, err := os.ReadFile(file)
			alias := strings.TrimSpace(string(b))
			if err != nil || seen[alias] {
				continue
			}
			seen[alias], again = true, true
			for _, name := range m.match(alias) {
				if err := m.load(name); err != nil {
					say("load module: %v", err)
				}
			}
		}
	}
}

// load loads a module and what it needs. A module that the image does not
// have is one that the kernel has built in.
func (m *modules) load(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loadLocked(name)
}

func (m *modules) loadLocked(name string) error {
	needs, known := m.needs[name]
	if !known || m.loaded[name] {
		return nil
	}
	m.loaded[name] = true
	for _, n := range needs {
		if err := m.loadLocked(n); err != nil {
			return err
		}
	}
	f, err := os.Open(filepath.Join(m.dir, name+".ko"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
