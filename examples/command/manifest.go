package command

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
)

// Manifests returns what text makes of each VMI in the files; the file - is in. The error has
// the faults of all files.
func Manifests(files []string, in io.Reader, c kinds.Cluster, text func(*vmi.VirtualMachineInstance) (string, error)) ([]string, error) {
	if len(files) == 0 {
		return nil, Fault("no file is given")
	}
	var all []string
	var wrong []error
	for _, file := range files {
		data, err := read(file, in)
		var instances []*vmi.VirtualMachineInstance
		if err == nil {
			instances, err = manifest.Instances(data, c)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", file, err))
		}
		for _, v := range instances {
			t, err := text(v)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s/%s: %w", file, v.Namespace, v.Name, err))
			}
			all = append(all, t)
		}
	}
	return all, errors.Join(wrong...)
}

func read(file string, in io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(file)
}
