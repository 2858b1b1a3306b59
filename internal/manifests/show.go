// Package manifests reads the manifests on the command line of the programs that show
// what becomes of VMIs. It touches the files and standard input.
package manifests

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
)

// Show returns what show makes of each VMI in the files, completed by the
// cluster; the file - is in. The error has the faults of all files, with the name of the
// file and of the VMI, or says that there is no file, which is of the class [command.ErrUsage].
func Show(files []string, in io.Reader, c kinds.Cluster, show func(*vmi.VirtualMachineInstance) (string, error)) ([]string, error) {
	if len(files) == 0 {
		return nil, command.Fault("no file is given")
	}
	var all []string
	var wrong []error
	for _, name := range files {
		instances, err := instances(name, in, c)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
		for _, v := range instances {
			text, err := show(v)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s/%s: %w", name, v.Namespace, v.Name, err))
			}
			all = append(all, text)
		}
	}
	return all, errors.Join(wrong...)
}

func instances(name string, in io.Reader, c kinds.Cluster) ([]*vmi.VirtualMachineInstance, error) {
	read := func() ([]byte, error) { return os.ReadFile(name) }
	if name == "-" {
		read = func() ([]byte, error) { return io.ReadAll(in) }
	}
	data, err := read()
	if err != nil {
		return nil, err
	}
	return manifest.Instances(data, c)
}
