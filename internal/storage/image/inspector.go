package image

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// The limits of an inspection where an [Inspector] says nothing.
const (
	// InspectionMemory is the memory of the process, in bytes. Go's runtime takes
	// about 40 MiB of it.
	InspectionMemory = 128 << 20
	// MinInspectionMemory is the least that a process can have: with less it may end
	// before it has read anything.
	MinInspectionMemory = 64 << 20
	// InspectionTimeout is how long an answer may take, on a node that is busy too. The
	// process itself may take less processor time, see [Inspection].
	InspectionTimeout = 2 * time.Minute
)

// maxFault is the longest fault that is taken from an answer, in bytes.
const maxFault = 512

// Inspector finds container disks and inspects their images. With a Command it does
// so in a process of its own for each image: that process has the image as its
// standard input and nothing else, no environment, and limits of its memory, its time
// and its output. The zero value inspects in the calling process.
//
// An Inspector may be used from any goroutine.
type Inspector struct {
	// Command is a program with its first arguments that calls [Inspection], with
	// one more argument, and does nothing else. Empty: the image is inspected in the
	// calling process.
	Command []string
	// MemoryBytes is what the process may have of memory. 0: [InspectionMemory]. Less
	// than [MinInspectionMemory] is taken for it.
	MemoryBytes int64
	// Timeout is how long an answer may take. 0: [InspectionTimeout].
	Timeout time.Duration
}

// ContainerDisk finds the image of the container disk whose root is the folder root,
// and inspects it. file is the absolute path of the image within the container disk;
// empty, it is the one file in /disk. A fault of the container disk itself is an error
// that wraps [vmi.ErrInvalid]. That the process crashed, gave no answer in time or
// another one than [Inspection] gives is an error too, which does not wrap it: what is
// in the image is not known then.
func (i Inspector) ContainerDisk(ctx context.Context, root, file string) (storage.Image, error) {
	f, name, err := find(root, file)
	if err != nil {
		return storage.Image{}, err
	}
	defer f.Close()
	found, err := i.inspect(ctx, f)
	if err != nil {
		return storage.Image{}, fmt.Errorf("/%s: %w", name, err)
	}
	found.Path = path.Join(root, name)
	return found, nil
}

// inspect inspects the image that f is open for.
func (i Inspector) inspect(ctx context.Context, f *os.File) (storage.Image, error) {
	info, err := f.Stat()
	if err != nil {
		return storage.Image{}, err
	}
	if len(i.Command) == 0 {
		return storage.Inspect(f, info.Size())
	}
	b, err := i.ask(ctx, f)
	if err != nil {
		return storage.Image{}, fmt.Errorf("inspect the image in a process of its own: %w", err)
	}
	return read(b, info.Size())
}

// ask runs the process and returns what it wrote.
func (i Inspector) ask(ctx context.Context, f *os.File) ([]byte, error) {
	timeout := cmp.Or(i.Timeout, InspectionTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s: %w", timeout, context.DeadlineExceeded))
	defer cancel()
	memory := max(cmp.Or(i.MemoryBytes, InspectionMemory), MinInspectionMemory)
	cmd := exec.CommandContext(ctx, i.Command[0], slices.Concat(i.Command[1:], []string{strconv.FormatInt(memory, 10)})...)
	var out answerBytes
	var stderr head
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{}, "/", outputDeadline
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f, &out, &stderr
	err := cmd.Run()
	switch {
	case out.tooLong:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxOutput)
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, ended(err, memory, stderr)
	}
	return out.bytes, nil
}

// ended is the error of a process that ended without an answer. The limits are in it: what
// a process says that has reached the one of its memory depends on where it stood, and may
// be a signal.
func ended(err error, memory int64, stderr []byte) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(stderr), []byte("\n"))
	return fmt.Errorf("it ended without an answer within its limits of %d MiB of memory and %d s of processor time: %w: %q",
		memory>>20, inspectionCPU, err, line[:min(len(line), maxFault)])
}

// answerBytes takes at most maxOutput bytes. An error ends the pipe, and so the process
// that writes more.
type answerBytes struct {
	bytes   []byte
	tooLong bool
}

func (a *answerBytes) Write(p []byte) (int, error) {
	if len(a.bytes)+len(p) > maxOutput {
		a.tooLong = true
		return 0, io.ErrShortBuffer
	}
	a.bytes = append(a.bytes, p...)
	return len(p), nil
}

// answer is what a process that inspects an image writes: the image, or the fault.
type answer struct {
	Format    storage.Format `json:"format,omitempty"`
	SizeBytes int64          `json:"sizeBytes,omitempty"`
	Fault     string         `json:"fault,omitempty"`
	// Invalid says that the fault is the image's.
	Invalid bool `json:"invalid,omitempty"`
}

// read reads an answer about an image of size bytes. What no process that works writes
// is an error that does not wrap [vmi.ErrInvalid].
func read(b []byte, size int64) (storage.Image, error) {
	var a answer
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return storage.Image{}, fmt.Errorf("read the answer of the process that inspects the image: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return storage.Image{}, errors.New("read the answer of the process that inspects the image: more than one value")
	}
	switch {
	case a.Fault != "" && a.Format == "" && a.SizeBytes == 0:
		text := printable(a.Fault)
		if a.Invalid {
			return storage.Image{}, fmt.Errorf("%s: %w", text, vmi.ErrInvalid)
		}
		return storage.Image{}, errors.New(text)
	case a.Fault == "" && !a.Invalid && a.Format == storage.Raw && a.SizeBytes == size,
		a.Fault == "" && !a.Invalid && a.Format == storage.QCOW2 && a.SizeBytes > 0 && a.SizeBytes <= storage.MaxBytes:
		return storage.Image{Format: a.Format, SizeBytes: a.SizeBytes}, nil
	}
	return storage.Image{}, errors.New("the answer of the process that inspects the image contradicts itself or the image")
}

// printable is what can be printed of the beginning of a text.
func printable(text string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text[:min(len(text), maxFault)]), string(unicode.ReplacementChar))
}
