package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// maxVolumes is how many volumes a VMI has at most.
const maxVolumes = 256

// volumes checks each volume by itself and that no two have the same name. The
// name of one that a disk shows is checked there.
func volumes(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	var l field.ErrorList
	vols, disks := s.Volumes, map[string]bool{}
	for _, d := range s.Domain.Devices.Disks {
		disks[d.Name] = true
	}
	if len(vols) > maxVolumes {
		l = append(l, field.Invalid(at, plural(len(vols), "volume"), fmt.Sprintf("must be at most %d, which is how many a VMI can have", maxVolumes)))
	}
	seen, accounts, seeds := map[string]int{}, 0, 0
	for i := range vols {
		v, here := &vols[i], at.Index(i)
		if !disks[v.Name] {
			l = append(l, invalid(here.Child("name"), v.Name, validation.IsDNS1123Label(v.Name))...)
		}
		if first, ok := seen[v.Name]; ok {
			l = append(l, field.Invalid(here.Child("name"), v.Name, fmt.Sprintf("is the name of %s too: choose another", at.Index(first))))
		} else {
			seen[v.Name] = i
		}
		if v.ServiceAccount != nil {
			accounts++
		}
		if v.CloudInitNoCloud != nil || v.CloudInitConfigDrive != nil {
			seeds++
		}
		l = append(l, source(here, v, lim)...)
	}
	if accounts > 1 {
		l = append(l, field.Invalid(at, plural(accounts, "serviceAccount volume"), "a VMI has at most one: its pod runs as one account"))
	}
	if seeds > 1 {
		l = append(l, field.Invalid(at, plural(seeds, "cloud-init volume"), "a VMI has at most one: cloud-init reads the first that it finds. Put everything into one"))
	}
	return l
}

// source checks that a volume has exactly one source, and that source.
func source(at *field.Path, v *vmi.Volume, lim Limits) field.ErrorList {
	var l field.ErrorList
	if n := len(v.Kinds()); n != 1 {
		l = append(l, field.Invalid(at, v.Name, fmt.Sprintf("must have exactly one source, such as containerDisk or persistentVolumeClaim, not %d", n)))
	}
	if c := v.ContainerDisk; c != nil {
		l = append(l, containerDisk(at.Child("containerDisk"), c)...)
	}
	if c := v.CloudInitNoCloud; c != nil {
		l = append(l, cloudInit(at.Child("cloudInitNoCloud"), c)...)
	}
	if c := v.CloudInitConfigDrive; c != nil {
		same := vmi.CloudInitNoCloud(*c)
		l = append(l, cloudInit(at.Child("cloudInitConfigDrive"), &same)...)
	}
	if d := v.DataVolume; d != nil && d.Name == "" {
		l = append(l, as(at.Child("name").String(), field.Required(at.Child("dataVolume", "name"), "name the DataVolume")))
	}
	if e := v.EmptyDisk; e != nil && (e.Capacity.Sign() <= 0 || e.Capacity.CmpInt64(vmi.MaxDiskBytes) > 0) {
		l = append(l, field.Invalid(at.Child("emptyDisk", "capacity"), e.Capacity.String(), "must be more than 0 and at most 1Pi"))
	}
	if h := v.HostDisk; h != nil {
		l = append(l, hostDisk(at, h, lim)...)
	}
	return append(l, named(at, v)...)
}

// named checks the sources that only name an object.
func named(at *field.Path, v *vmi.Volume) field.ErrorList {
	var l field.ErrorList
	missing := func(here *field.Path, kind string) { l = append(l, field.Invalid(here, "", "must name the "+kind)) }
	if c := v.ConfigMap; c != nil && c.Name == "" {
		missing(at.Child("configMap", "name"), "ConfigMap")
	}
	if s := v.Secret; s != nil && s.SecretName == "" {
		missing(at.Child("secret", "secretName"), "Secret")
	}
	if s := v.ServiceAccount; s != nil && s.ServiceAccountName == "" {
		missing(at.Child("serviceAccount", "serviceAccountName"), "service account")
	}
	if e := v.Ephemeral; e != nil && e.PersistentVolumeClaim == nil {
		l = append(l, field.Required(at.Child("ephemeral", "persistentVolumeClaim"), "name the claim that is read"))
	}
	if d := v.DownwardAPI; d != nil {
		l = append(l, downwardAPI(at.Child("downwardAPI", "fields"), d.Fields)...)
	}
	l = append(l, fileLabels(at, v)...)
	if s := v.Sysprep; s != nil {
		if n := count(s.Secret != nil, s.ConfigMap != nil); n != 1 {
			l = append(l, field.Invalid(at.Child("sysprep"), plural(n, "source"), "must be exactly one of secret and configMap"))
		}
		if s.Secret != nil && s.Secret.Name == "" {
			missing(at.Child("sysprep", "secret", "name"), "Secret")
		}
		if s.ConfigMap != nil && s.ConfigMap.Name == "" {
			missing(at.Child("sysprep", "configMap", "name"), "ConfigMap")
		}
	}
	return l
}

// maxFilesLabel is the longest label of an ISO 9660 file system.
const maxFilesLabel = 32

// fileLabels checks the labels of images of files.
func fileLabels(at *field.Path, v *vmi.Volume) field.ErrorList {
	labels := map[string]string{}
	if c := v.ConfigMap; c != nil {
		labels["configMap"] = c.VolumeLabel
	}
	if s := v.Secret; s != nil {
		labels["secret"] = s.VolumeLabel
	}
	if d := v.DownwardAPI; d != nil {
		labels["downwardAPI"] = d.VolumeLabel
	}
	var l field.ErrorList
	for kind, label := range labels {
		odd := strings.ContainsFunc(label, func(r rune) bool { return r < ' ' || r > '~' })
		if odd || len(label) > maxFilesLabel {
			l = append(l, field.Invalid(at.Child(kind, "volumeLabel"), label, fmt.Sprintf("must be at most %d printable ASCII characters", maxFilesLabel)))
		}
	}
	return l
}

func containerDisk(at *field.Path, c *vmi.ContainerDisk) field.ErrorList {
	var l field.ErrorList
	switch {
	case c.Image == "":
		l = append(l, field.Required(at.Child("image"), "name the container image"))
	case strings.TrimSpace(c.Image) != c.Image:
		l = append(l, field.Invalid(at.Child("image"), c.Image, "must not begin or end with white space"))
	}
	if c.ImagePullSecret != "" {
		l = append(l, invalid(at.Child("imagePullSecret"), c.ImagePullSecret, validation.IsDNS1123Subdomain(c.ImagePullSecret))...)
	}
	for _, e := range imagePath(at.Child("path"), c.Path) {
		l = append(l, as(at.String(), e))
	}
	return l
}

func hostDisk(at *field.Path, h *vmi.HostDisk, lim Limits) field.ErrorList {
	var l field.ErrorList
	here := at.Child("hostDisk")
	if !lim.Features.HostDisk {
		l = append(l, as(at.String(), field.Invalid(here, h.Path, "disks in files of the node are switched off in this cluster's configuration: use a persistentVolumeClaim")))
	}
	if h.Path == "" {
		l = append(l, &field.Error{Type: field.ErrorTypeNotFound, Field: here.Child("path").String(), BadValue: "", Detail: "name the file on the node"})
	}
	if h.Path != "" && (!path.IsAbs(h.Path) || path.Clean(h.Path) == "/" || slices.Contains(strings.Split(h.Path, "/"), "..")) {
		l = append(l, field.Invalid(here.Child("path"), h.Path, "must be the absolute path of a file, without '..'"))
	}
	l = append(l, exactlyOneOf(here.Child("type"), h.Type, vmi.HostDiskExists, vmi.HostDiskExistsOrCreate)...)
	if c := h.Capacity; c != nil && !bad(*c) && (c.Sign() < 0 || c.CmpInt64(vmi.MaxDiskBytes) > 0) {
		l = append(l, field.Invalid(here.Child("capacity"), c.String(), "must be more than 0 and at most 1Pi"))
	}
	if h.Type == vmi.HostDiskExists && h.Capacity != nil && !h.Capacity.IsZero() {
		l = append(l, field.Invalid(here.Child("capacity"), h.Capacity.String(), "needs type DiskOrCreate: a disk that exists has its size"))
	}
	return l
}

// serviceAccount checks the account that the pod runs as. A volume with an
// account's token makes the pod run as that account.
func serviceAccount(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	name, here := s.ServiceAccountName, at.Child("serviceAccountName")
	if name == "" {
		return nil
	}
	l := invalid(here, name, validation.IsDNS1123Subdomain(name))
	for _, v := range s.Volumes {
		if a := v.ServiceAccount; a != nil && a.ServiceAccountName != name {
			l = append(l, field.Invalid(here, name, "must be the account of the volume "+v.Name+", "+quote(a.ServiceAccountName)+": a pod runs as one account"))
		}
	}
	return l
}
