package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// inspectionCPU is the processor time of an inspection, in seconds.
const inspectionCPU = 5

// Inspection is what the program of an [Inspector] does: it limits the process that it
// runs in, for good, inspects the image on standard input and writes the answer to out.
// memory is the argument that the program was given. The process then has that much
// private memory, 5 s of processor time, opens and writes no file, and leaves no core.
//
// A fault of the image is an answer. An error is that there is none.
func Inspection(memory string, out io.Writer) error {
	bytes, err := strconv.ParseUint(memory, 10, 63)
	if err != nil {
		return fmt.Errorf("read the limit of the memory: %w", err)
	}
	if err := limit(bytes); err != nil {
		return err
	}
	info, err := os.Stdin.Stat()
	if err != nil {
		return err
	}
	var a answer
	switch image, err := inspectFile(os.Stdin, info); {
	case err != nil:
		a.Fault, a.Invalid = strings.TrimSuffix(err.Error(), ": "+vmi.ErrInvalid.Error()), errors.Is(err, vmi.ErrInvalid)
	default:
		a.Format, a.SizeBytes = image.Format, image.SizeBytes
	}
	return json.NewEncoder(out).Encode(a)
}

func inspectFile(f io.ReaderAt, info os.FileInfo) (storage.Image, error) {
	if !info.Mode().IsRegular() {
		return storage.Image{}, fmt.Errorf("standard input is not a regular file but %s", info.Mode().Type())
	}
	return storage.Inspect(f, info.Size())
}

// limit limits the process. RLIMIT_AS does not do for its memory: Go's runtime
// reserves more than a gigabyte of addresses that it does not use.
func limit(memory uint64) error {
	for _, l := range []struct {
		name      string
		resource  int
		soft, max uint64
	}{
		{"memory", unix.RLIMIT_DATA, memory, memory},
		{"processor time", unix.RLIMIT_CPU, inspectionCPU, inspectionCPU + 1},
		{"size of files", unix.RLIMIT_FSIZE, 0, 0},
		{"open files", unix.RLIMIT_NOFILE, 0, 0},
		{"size of cores", unix.RLIMIT_CORE, 0, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("read the limit of the %s: %w", l.name, err)
		}
		now.Cur, now.Max = min(l.soft, now.Max), min(l.max, now.Max)
		if err := unix.Setrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("limit the %s: %w", l.name, err)
		}
	}
	return nil
}
