package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// capabilitiesDir is the folder of the image with libvirt's record of what QEMU
// can do. Making it takes from a third of a second to several.
const capabilitiesDir = "/usr/share/podvisor/qemu-capabilities"

// warm copies the image's record of what QEMU can do to where the daemon reads it.
// libvirt uses it only if the change times in it are those of the installed files,
// which they are nowhere but where the image was made, so they are replaced.
// Without a record, or with one that it does not use, libvirt makes its own.
func (d *Daemon) warm() error {
	records, err := filepath.Glob(filepath.Join(capabilitiesDir, "*.xml"))
	if err != nil || len(records) == 0 {
		return err
	}
	qemu, err := changed(QEMUPath(Arch()))
	if err != nil {
		return err
	}
	self, err := changed(DaemonPath, driver())
	if err != nil {
		return err
	}
	dir := d.folder("cache/libvirt/qemu/cache/capabilities")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, path := range records {
		record, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		record = setTime(setTime(record, "qemuctime", qemu), "selfctime", self)
		if _, err := os.Stat(kvmDevice); errors.Is(err, fs.ErrNotExist) {
			record = forEmulation(record)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), record, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// kvmDevice is in the pod if its guest can run on KVM.
const kvmDevice = "/dev/kvm"

// eachFeature is in the record of a QEMU that says of each feature of a processor whether the
// guest has it.
var eachFeature = regexp.MustCompile(`\s*<flag name='cpu-unavailable-features'/>`)

// forEmulation is the record for guests that are emulated. When a domain starts, libvirt asks
// such a QEMU about each feature, in 465 questions, and otherwise in two, which say nothing of
// features in MSRs. libvirt 11.3 takes those of a model for disabled then; an emulated
// processor has them in newer models of Intel's alone, and in no host-model. On KVM they
// matter, so libvirt asks.
func forEmulation(record []byte) []byte { return eachFeature.ReplaceAll(record, nil) }

// changed is the latest change time of files, in seconds. A file that does
// not exist is left out.
func changed(paths ...string) (int64, error) {
	var latest int64
	for _, p := range paths {
		var s unix.Stat_t
		if err := unix.Stat(p, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, &os.PathError{Op: "stat", Path: p, Err: err}
		}
		latest = max(latest, s.Ctim.Sec)
	}
	return latest, nil
}

// setTime replaces the text of an element.
func setTime(xml []byte, element string, seconds int64) []byte {
	re := regexp.MustCompile("<" + element + ">[0-9]+</" + element + ">")
	return re.ReplaceAll(xml, fmt.Appendf(nil, "<%s>%d</%[1]s>", element, seconds))
}
