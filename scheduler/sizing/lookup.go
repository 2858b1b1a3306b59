package sizing

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// Lookup asks the API server, each time until ctx ends.
func Lookup(ctx context.Context, c *client.Client, kube kubernetes.Interface) instancetype.Lookup {
	return instancetype.Lookup{
		Claim: func(namespace, name string) (*corev1.PersistentVolumeClaim, error) {
			if !isName(name) {
				return nil, nil
			}
			v, err := kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil, nil
			case err != nil:
				return nil, fmt.Errorf("read PersistentVolumeClaim %s/%s: %w", namespace, name, err)
			}
			return v, nil
		},
		Object: func(d vmi.Definition, namespace, name string) (vmi.Object, error) {
			if !isName(name) {
				return nil, nil
			}
			o, err := client.Of(c, d.Untyped(), namespace).Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil, nil
			case err != nil:
				return nil, fmt.Errorf("read %s %s: %w", d.Kind, name, err)
			}
			return o, nil
		},
		// By its name in a list: the account may read revisions by no other request.
		Revision: func(namespace, name string) (*appsv1.ControllerRevision, error) {
			all, err := kube.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{
				FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
			})
			if err != nil {
				return nil, fmt.Errorf("read ControllerRevision %s/%s: %w", namespace, name, err)
			}
			for i := range all.Items {
				if all.Items[i].Name == name {
					return &all.Items[i], nil
				}
			}
			return nil, nil
		},
	}
}

// isName reports whether an object can have the name. A client refuses to ask for another one,
// since that would be another path.
func isName(name string) bool { return len(content.IsPathSegmentName(name)) == 0 }
