package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// dataVolumeTemplates checks that each can be made where the VM is and is
// used by it. KubeVirt reports most faults without the plural, and one of each.
func dataVolumeTemplates(spec *field.Path, v *vmi.VirtualMachine) field.ErrorList {
	l := quantity.Faults(spec.Child("dataVolumeTemplates"), v.Spec.DataVolumeTemplates)
	used := map[string]bool{}
	for _, v := range v.Spec.Template.Spec.Volumes {
		if v.DataVolume != nil {
			used[v.DataVolume.Name] = true
		}
		if v.PersistentVolumeClaim != nil {
			used[v.PersistentVolumeClaim.ClaimName] = true
		}
	}
	for i := range v.Spec.DataVolumeTemplates {
		d, here, name := &v.Spec.DataVolumeTemplates[i], spec.Child("dataVolumeTemplates").Index(i), spec.Child("dataVolumeTemplate").Index(i)
		if n := d.ObjectMeta.Namespace; n != "" && v.Namespace != "" && n != v.Namespace {
			l = append(l, as(here.String(), field.Invalid(here.Child("metadata", "namespace"), n, "must be the VM's namespace, "+quote(v.Namespace)+": leave it out")))
		}
		if e := dataVolume(here, name, d); e != nil {
			l = append(l, e)
		} else if !used[d.ObjectMeta.Name] {
			l = append(l, as(name.String(), field.Required(here, "the template has no volume of this DataVolume: add one with dataVolume.name "+quote(d.ObjectMeta.Name))))
		}
	}
	return l
}

// dataVolume is the first fault of a DataVolume, or nil. The name is KubeVirt's
// for its path.
func dataVolume(at, name *field.Path, d *vmi.DataVolumeTemplate) *field.Error {
	s, spec := &d.Spec, at.Child("spec")
	source, sources := name.Child("source").String(), sourcesOf(s.Source)
	claimed, refilled := claimSource(s), s.Source != nil || s.SourceRef != nil
	switch {
	case d.ObjectMeta.Name == "":
		return as(name.Child("name").String(), field.Required(at.Child("metadata", "name"), "name the DataVolume, as a volume of the template does in dataVolume.name"))
	case (s.PVC == nil) == (s.Storage == nil):
		return as(name.Child("PVC", "Storage").String(), field.Invalid(spec, plural(count(s.PVC != nil, s.Storage != nil), "claim"),
			"must have exactly one of pvc and storage, which say how large the disk is"))
	case claimed && refilled:
		return as(source, field.Invalid(spec, field.OmitValueType{}, "the dataSource or dataSourceRef of the claim excludes source and sourceRef: leave one out"))
	case claimed:
		return nil
	case s.Source != nil && s.SourceRef != nil:
		return as(source, field.Invalid(spec, field.OmitValueType{}, "source excludes sourceRef: leave one out"))
	case !refilled:
		return as(name.Child("source", "sourceRef").String(), field.Invalid(spec, field.OmitValueType{},
			"does not say what the disk is filled with: set source or sourceRef, for an empty disk source.blank: {}"))
	case s.Source != nil && sources != 1:
		return as(source, field.Invalid(spec.Child("source"), plural(sources, "source"), "must have exactly one of "+sourceNames))
	}
	return nil
}

// claimSource says that the claim itself says what it is filled with.
func claimSource(s *vmi.DataVolumeSpec) bool {
	if s.PVC != nil {
		return s.PVC.DataSource != nil || s.PVC.DataSourceRef != nil
	}
	return s.Storage != nil && (s.Storage.DataSource != nil || s.Storage.DataSourceRef != nil)
}

const sourceNames = "blank, http, registry, pvc, snapshot, upload, s3, gcs, imageio and vddk"

func sourcesOf(s *vmi.DataVolumeSource) int {
	if s == nil {
		return 0
	}
	return count(s.Blank != nil, s.HTTP != nil, s.Registry != nil, s.PVC != nil, s.Snapshot != nil, s.Upload != nil, s.S3 != nil, s.GCS != nil, s.Imageio != nil, s.VDDK != nil)
}
