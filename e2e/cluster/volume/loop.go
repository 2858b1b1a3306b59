package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Detach frees the loop devices of the file, or of the files below the folder, and the
// loop devices that hold those, as the kubelet has one for each device in a pod.
func Detach(path string) error {
	all, err := loops()
	if err != nil {
		return err
	}
	ours := map[uint64]bool{}
	for _, l := range all {
		if l.file == path || strings.HasPrefix(l.file, path+"/") {
			ours[l.device] = true
		}
	}
	var faults []error
	for _, l := range all {
		if ours[l.holds] {
			faults = append(faults, l.detach())
		}
	}
	for _, l := range all {
		if ours[l.device] {
			faults = append(faults, l.detach())
		}
	}
	return errors.Join(faults...)
}

// loop is a loop device in use.
type loop struct {
	path   string
	device uint64 // its own number
	file   string // that it shows; empty if it shows another device
	holds  uint64 // the number of the device that it shows
}

func (l loop) detach() error {
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detach %s: %w", l.path, err)
	}
	return nil
}

// loops are the loop devices of the host that are in use.
func loops() ([]loop, error) {
	found, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	var all []loop
	for _, file := range found {
		l, err := look(file)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENXIO): // it is not in use any more
		case err != nil:
			return nil, err
		default:
			all = append(all, l)
		}
	}
	return all, nil
}

func look(backing string) (loop, error) {
	content, err := os.ReadFile(backing)
	if err != nil {
		return loop{}, err
	}
	l := loop{path: filepath.Join("/dev", filepath.Base(filepath.Dir(filepath.Dir(backing))))}
	f, err := os.Open(l.path)
	if err != nil {
		return loop{}, err
	}
	defer f.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return loop{}, err
	}
	l.device = stat.Rdev
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		return loop{}, err
	}
	if l.holds = info.Rdevice; l.holds == 0 {
		l.file = strings.TrimSuffix(strings.TrimSpace(string(content)), " (deleted)")
	}
	return l, nil
}
