package supervisor

import (
	"context"
	"io"
	"time"

	"github.com/podvisor/podvisor/internal/storage/image"
	"github.com/podvisor/podvisor/storage"
)

// Inspector says how the images of container disks are inspected. With a Command, a
// process of its own does it for each image: that process has the image as its standard
// input and nothing else, no environment, and limits of its memory, its time and its
// output. The zero value inspects in the calling process.
type Inspector struct {
	// Command is a program with its first arguments that calls [Inspection], with
	// one more argument, and does nothing else. Empty: the image is inspected in the
	// calling process.
	Command []string
	// MemoryBytes is what the process may have of memory. 0: 128 MiB. At least 64 MiB
	// are taken, since a process with less may end before it has read anything.
	MemoryBytes int64
	// Timeout is how long an answer may take. 0: 30 s. The process itself may take less
	// processor time: see [Inspection].
	Timeout time.Duration
}

// ContainerDisk finds the image of the container disk whose root is the folder root,
// and inspects it. file is the absolute path of the image within the container disk;
// empty, it is the one file in /disk. A fault of the container disk itself is an error
// that wraps [vmi.ErrInvalid]. That the process crashed, gave no answer in time or
// another one than [Inspection] gives is an error too, which does not wrap it: what is
// in the image is not known then.
func (i Inspector) ContainerDisk(ctx context.Context, root, file string) (storage.Image, error) {
	return image.Inspector(i).ContainerDisk(ctx, root, file)
}

// Inspection is what the program of an [Inspector] does: it limits the process that it
// runs in, for good, inspects the image on standard input and writes the answer to out.
// memory is the argument that the program was given. The process then has that much
// private memory, 5 s of processor time, opens and writes no file, and leaves no core.
//
// A fault of the image is an answer. An error is that there is none.
func Inspection(memory string, out io.Writer) error { return image.Inspection(memory, out) }
