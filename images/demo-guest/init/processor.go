package main

import (
	"errors"
	"os"
	"path/filepath"
)

// bringUpProcessors brings up the processors that the kernel has not, of those in the folder of
// sysfs. The kernel is started with maxcpus=1, so that it finds the PCI devices with one: QEMU 10
// that emulates several may abort while one of them changes the address space (iotlb_to_section,
// issue 1921 of QEMU). The first processor has no file "online".
func bringUpProcessors(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "cpu[0-9]*", "online"))
	errs := []error{err}
	for _, file := range files {
		errs = append(errs, os.WriteFile(file, []byte("1"), 0o644))
	}
	return errors.Join(errs...)
}
