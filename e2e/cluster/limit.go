package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limits are sysctls that bound what all clusters use together. A cluster needs
// about 50 inotify instances, and all of root's programs share the usual 128.
var limits = map[string]int{
	"fs/inotify/max_user_instances": 8192,
	"fs/inotify/max_user_watches":   1 << 20,
}

// savedLimits is the file with what the limits were before the first cluster.
func (c Config) savedLimits() string { return filepath.Join(c.Dir, "clusters", "limits.json") }

// claim makes the cluster's folder and raises the limits that are lower than
// clusters need.
func (c Config) claim() error {
	unlock, err := c.lockFolder()
	if err != nil {
		return err
	}
	defer unlock()
	// The folder keeps others from putting the limits back.
	if err := os.MkdirAll(c.state(), 0o755); err != nil {
		return err
	}
	saved, err := c.readLimits()
	if err != nil {
		return err
	}
	for name, need := range limits {
		have, err := c.sysctl(name)
		if err != nil {
			return err
		}
		if have >= need {
			continue
		}
		if _, ok := saved[name]; !ok {
			saved[name] = have
		}
		if err := writeJSON(c.savedLimits(), saved); err != nil {
			return err
		}
		if err := c.setSysctl(name, need); err != nil {
			return fmt.Errorf("raise a limit: %w", err)
		}
	}
	return nil
}

// release puts the limits back when there is no cluster any more. A limit that
// another program has changed meanwhile stays.
func (c Config) release() error {
	unlock, err := c.lockFolder()
	if err != nil {
		return err
	}
	defer unlock()
	if others, err := List(c); err != nil || len(others) > 0 {
		return err
	}
	saved, err := c.readLimits()
	if err != nil {
		return err
	}
	for name, was := range saved {
		if have, err := c.sysctl(name); err != nil || have != limits[name] {
			continue
		}
		if err := c.setSysctl(name, was); err != nil {
			return fmt.Errorf("put a limit back: %w", err)
		}
	}
	if err := os.Remove(c.savedLimits()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lockFolder keeps claims and releases of all clusters apart.
func (c Config) lockFolder() (func(), error) {
	f, err := os.Open(filepath.Join(c.Dir, "clusters"))
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

func (c Config) readLimits() (map[string]int, error) {
	saved := map[string]int{}
	data, err := os.ReadFile(c.savedLimits())
	if errors.Is(err, fs.ErrNotExist) {
		return saved, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &saved); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.savedLimits(), err)
	}
	return saved, nil
}

// writeJSON replaces the file at once: half a file would lose what the limits were.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// sysctl reads a limit.
func (c Config) sysctl(name string) (int, error) {
	data, err := os.ReadFile(filepath.Join(c.sysctls, name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}

func (c Config) setSysctl(name string, value int) error {
	return os.WriteFile(filepath.Join(c.sysctls, name), []byte(strconv.Itoa(value)), 0o644)
}
