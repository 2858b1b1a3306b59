// Command pack-disk packs a disk into a container image, which a VMI uses as a
// containerDisk. It needs no container engine.
//
//	pack-disk -name NAME:TAG [-output FILE] [-arch ARCH] [-raw] DISK
//	pack-disk claim -claim NAME -image IMAGE [-file FILE] [-size SIZE] [-class CLASS] [-launcher IMAGE]
//
// The second prints a claim and a Job that copies the disk of such an image into it,
// which makes a disk that stays: docs/root-disks.md. It uses no cluster.
//
// DISK is a qcow2 image, a raw image or an ISO. What no guest could use as a disk is
// refused: see [inspect]. FILE is an image archive, both of OCI and of docker save,
// which is loaded by
//
//	ctr -n k8s.io images import FILE
//	kind load image-archive FILE
//	podman load -i FILE
//	docker load -i FILE
//
// In the image the disk is the one file in /disk and belongs to user and group 107,
// as which QEMU runs, with mode 0440. The same disk, name and architecture make the
// same archive, byte for byte.
//
// The exit status is 1 if the disk is refused or the archive cannot be written, and
// 2 if the arguments are wrong.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const usage = "usage: pack-disk -name NAME:TAG [-output FILE] [-arch ARCH] [-raw] DISK"

// architectures are those of the nodes on which guests run.
var architectures = []string{"amd64", "arm64", "s390x"}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program. It returns the exit status.
func run(args []string, out, notes io.Writer) int {
	if len(args) > 0 && args[0] == "claim" {
		return runClaim(args[1:], out, notes)
	}
	flags := flag.NewFlagSet("pack-disk", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	name := flags.String("name", "", "the `NAME:TAG` of the image, as a VMI's containerDisk has it")
	output := flags.String("output", "", "the `file` to write (default: the name of DISK with .tar, in this folder)")
	arch := flags.String("arch", "amd64", "the architecture of the nodes: "+strings.Join(architectures, ", "))
	raw := flags.Bool("raw", false, "pack a raw image in which no partition table and no file system is found")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(out, "%s\n       %s\n", usage, strings.TrimPrefix(claimUsage, "usage: "))
		flags.SetOutput(out)
		flags.PrintDefaults()
		return 0
	}
	var ref reference
	switch {
	case err != nil:
	case flags.NArg() != 1:
		err = errors.New("one disk is needed")
	case !slices.Contains(architectures, *arch):
		err = fmt.Errorf("architecture %q is none of %s", *arch, strings.Join(architectures, ", "))
	default:
		ref, err = parseReference(*name)
	}
	if err != nil {
		fmt.Fprintf(notes, "pack-disk: %v: see pack-disk --help\n", err)
		return 2
	}
	if *output == "" {
		base := filepath.Base(flags.Arg(0))
		*output = strings.TrimSuffix(base, filepath.Ext(base)) + ".tar"
	}
	d, err := pack(flags.Arg(0), *output, ref, *arch, *raw)
	if err != nil {
		fmt.Fprintln(notes, err)
		return 1
	}
	fmt.Fprintf(out, "%s: image %s with a %s disk of %d bytes\n", *output, ref, d.kind, d.sizeBytes)
	if ref.tag == "latest" {
		fmt.Fprintln(notes, "note: the kubelet pulls an image with the tag latest each time, which fails for one that is only loaded: set imagePullPolicy, or use another tag")
	}
	return 0
}

// pack packs the disk at path into the archive output, which appears when it is
// complete.
func pack(path, output string, ref reference, arch string, anyRaw bool) (disk, error) {
	refused := func(err error) (disk, error) { return disk{}, fmt.Errorf("pack %s: %w", path, err) }
	f, err := os.Open(path)
	if err != nil {
		return disk{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return disk{}, err
	}
	if !info.Mode().IsRegular() {
		return refused(fmt.Errorf("it is not a regular file but %s", info.Mode().Type()))
	}
	d, err := inspect(f, info.Size(), anyRaw)
	if err != nil {
		return refused(err)
	}
	if same, err := os.Stat(output); err == nil && os.SameFile(same, info) {
		return refused(errors.New("the output is the disk itself"))
	}
	temp, err := os.CreateTemp(filepath.Dir(output), ".pack-disk-*")
	if err != nil {
		return disk{}, err
	}
	defer os.Remove(temp.Name())
	i := image{reference: ref, arch: arch, file: d.file, size: info.Size(), content: f}
	if err := errors.Join(i.write(temp), temp.Chmod(0o644), temp.Close()); err != nil {
		return refused(err)
	}
	return d, os.Rename(temp.Name(), output)
}
