package instancetype

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Lookup reads what VMs name. All functions are required, and return nil for what does not
// exist.
//
// +kubebuilder:object:generate=false
type Lookup struct {
	// Object reads an instance type or a preference. The namespace is empty for the kinds
	// of the cluster.
	Object func(d vmi.Definition, namespace, name string) (vmi.Object, error)
	// Revision reads a ControllerRevision.
	Revision func(namespace, name string) (*appsv1.ControllerRevision, error)
	// Claim reads a claim whose labels name what a VM is to use.
	Claim func(namespace, name string) (*corev1.PersistentVolumeClaim, error)
}

// Nothing is the Lookup where nothing exists.
func Nothing() Lookup {
	return Lookup{
		Object:   func(vmi.Definition, string, string) (vmi.Object, error) { return nil, nil },
		Revision: func(string, string) (*appsv1.ControllerRevision, error) { return nil, nil },
		Claim:    func(string, string) (*corev1.PersistentVolumeClaim, error) { return nil, nil },
	}
}

// Find finds what the references of a VM in the namespace lead to, each with the reason if it
// leads to nothing: the ControllerRevision that the user names, that of the status, the object
// itself. The error is that of the Lookup.
func (l Lookup) Find(namespace string, all []Reference) ([]Found, error) {
	var out []Found
	var errs []error
	for _, r := range all {
		f, err := l.find(namespace, r)
		out, errs = append(out, f), append(errs, err)
	}
	return out, errors.Join(errs...)
}

func (l Lookup) find(namespace string, r Reference) (Found, error) {
	f := Found{Reference: r}
	if name := r.Revision(); name != "" {
		c, err := l.Revision(namespace, name)
		switch {
		case err != nil:
			return f, err
		case c == nil:
			f.Missing = fmt.Sprintf("ControllerRevision %s, which holds the %s of the VM, does not exist", name, r.Part)
			return f, nil
		case r.Holds(c):
			f.Revision, f.Former = name, r.RevisionName == "" && c.Labels[ObjectVersionLabel] != GroupVersion.Version
			if f.Object, err = held(r.Part, c); err != nil {
				f.Missing = err.Error()
			}
			return f, nil
		}
	}
	if r.Name == "" {
		f.Missing = unnamed(r)
		return f, nil
	}
	d, ok := r.Definition()
	if !ok {
		f.Missing = fmt.Sprintf("spec.%s.kind: there is no kind %q of what it names", r.Part, r.Kind)
		return f, nil
	}
	if d.ClusterScoped {
		namespace = ""
	}
	o, err := l.Object(d, namespace, r.Name)
	switch {
	case err != nil:
		return f, err
	case o == nil:
		f.Missing = fmt.Sprintf("%s %s, which spec.%s names, does not exist", d.Kind, r.Name, r.Part)
	}
	f.Object = o
	return f, nil
}

// unnamed is why a VM that is stored names nothing: no webhook has judged it.
func unnamed(r Reference) string {
	if r.Volume != "" {
		return fmt.Sprintf("spec.%s: no webhook answered that takes its name from volume %s: write the VM again", r.Part, r.Volume)
	}
	return fmt.Sprintf("spec.%s has no name: name what the VM is to use", r.Part)
}
