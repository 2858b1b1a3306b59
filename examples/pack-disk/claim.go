package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

const claimUsage = "usage: pack-disk claim -claim NAME -image IMAGE [-file FILE] [-size SIZE] [-class CLASS] [-launcher IMAGE]"

// claim is a claim with a disk that is copied from a container disk.
type claim struct {
	// Name is that of the claim. Required.
	Name string
	// Size is the claim's. Required.
	Size string
	// Class is its storage class. Empty: the cluster's own choice.
	Class string
	// Image is the container disk, and File the file in its folder /disk. Required.
	Image, File string
	// Launcher is the image that has qemu-img. Required.
	Launcher string
}

// Format is the format of the file: qcow2 or raw.
func (c claim) Format() string {
	if path.Ext(c.File) == ".qcow2" {
		return "qcow2"
	}
	return "raw"
}

// Job is the name of the Job that copies the disk.
func (c claim) Job() string { return c.Name + "-from-image" }

// manifest is the claim and the Job, as docs/root-disks.md has them. Its values are
// checked before, so that each is one scalar of YAML.
var manifest = template.Must(template.New("claim").Parse(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: {{.Name}}}
spec:
  accessModes: [ReadWriteOnce]
{{- with .Class}}
  storageClassName: {{.}}
{{- end}}
  resources: {requests: {storage: {{.Size}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: {{.Job}}}
spec:
  backoffLimit: 3
  template:
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, runAsUser: 107, runAsGroup: 107, fsGroup: 107, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: convert
        image: "{{.Launcher}}"
        command: [/usr/bin/qemu-img, convert, -f, "{{.Format}}", -O, raw, -t, writeback, "/image/disk/{{.File}}", /claim/disk.img]
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        resources: {requests: {cpu: 100m, memory: 128Mi}}
        volumeMounts:
        - {name: image, mountPath: /image}
        - {name: claim, mountPath: /claim}
      volumes:
      - {name: image, image: {reference: "{{.Image}}"}}
      - {name: claim, persistentVolumeClaim: {claimName: {{.Name}}}}
`))

var (
	imagePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
	filePattern  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
)

// check says all that is wrong with the arguments.
func (c claim) check() error {
	var all []string
	fault := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch {
	case c.Name == "":
		fault("-claim is missing: the name of the claim that is made")
	case len(validation.IsDNS1123Label(c.Name)) > 0 || len(c.Job()) > validation.DNS1123LabelMaxLength:
		fault("-claim %q is no name of a claim and of a Job: it has lower-case letters, digits and - between them, and at most %d characters",
			c.Name, validation.DNS1123LabelMaxLength-len(claim{}.Job()))
	}
	switch {
	case c.Image == "":
		fault("-image is missing: the container disk, as a VMI's containerDisk names it")
	case !imagePattern.MatchString(c.Image):
		fault("-image %q is no name of an image", c.Image)
	}
	if !imagePattern.MatchString(c.Launcher) {
		fault("-launcher %q is no name of an image", c.Launcher)
	}
	if !filePattern.MatchString(c.File) {
		fault("-file %q is no name of a file in the folder /disk of the image: it has letters, digits, and . _ -", c.File)
	}
	if size, err := resource.ParseQuantity(c.Size); err != nil || size.Sign() <= 0 {
		fault("-size %q is no size of a claim: write one as 10Gi", c.Size)
	}
	if c.Class != "" && len(validation.IsDNS1123Subdomain(c.Class)) > 0 {
		fault("-class %q is no name of a storage class", c.Class)
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New(strings.Join(all, "; "))
}

// runClaim prints the claim and the Job that the arguments ask for. It returns the exit
// status.
func runClaim(args []string, out, notes io.Writer) int {
	flags := flag.NewFlagSet("pack-disk claim", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var c claim
	flags.StringVar(&c.Name, "claim", "", "the `name` of the claim")
	flags.StringVar(&c.Image, "image", "", "the container disk, as a VMI's containerDisk names the `image`")
	flags.StringVar(&c.File, "file", "disk.qcow2", "the `file` in the folder /disk of the image: a qcow2 image if its name ends so, or else a raw one")
	flags.StringVar(&c.Size, "size", "1Gi", "the `size` of the claim, which holds the whole disk")
	flags.StringVar(&c.Class, "class", "", "the storage `class` of the claim (default: that of the cluster)")
	flags.StringVar(&c.Launcher, "launcher", "localhost/podvisor/virt-launcher:dev", "the `image` of virt-launcher in the cluster, which has qemu-img")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, claimUsage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("%q is no option", strings.Join(flags.Args(), " "))
	}
	if err = cmp.Or(err, c.check()); err != nil {
		fmt.Fprintf(notes, "pack-disk claim: %v: see pack-disk claim --help\n", err)
		return 2
	}
	if err := manifest.Execute(out, c); err != nil {
		fmt.Fprintln(notes, err)
		return 1
	}
	return 0
}
