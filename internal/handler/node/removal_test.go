package node

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// object is the metadata of an object; deleted says that it waits for its end.
func object(apiVersion, kind, namespace, name string, deleted bool) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
	if deleted {
		now := metav1.Now()
		o.DeletionTimestamp, o.Finalizers = &now, []string{"example.com/wait"}
	}
	return o
}

func theDefinition(deleted bool) *metav1.PartialObjectMetadata {
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "virtualmachineinstances.kubevirt.io", deleted)
}

func theDaemonSet(deleted bool) *metav1.PartialObjectMetadata {
	return object("apps/v1", "DaemonSet", "kubevirt", "virt-handler", deleted)
}

func metadataOf(t *testing.T, objects ...runtime.Object) *fake.FakeMetadataClient {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(s))
	return fake.NewSimpleMetadataClient(s, objects...)
}

func TestAProcessThatEndsKnowsWhetherPodvisorIsUninstalled(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no role"))
	unauthorized := apierrors.NewUnauthorized("no pod")
	tests := []struct {
		name    string
		objects []runtime.Object
		// errs are answers of the API server by resource.
		errs map[string]error
		want bool
	}{
		{"a restart", []runtime.Object{theDefinition(false), theDaemonSet(false)}, nil, false},
		{"the DaemonSet is gone", []runtime.Object{theDefinition(false)}, nil, true},
		{"the DaemonSet is being deleted", []runtime.Object{theDefinition(false), theDaemonSet(true)}, nil, true},
		{"the token is not accepted", nil, map[string]error{"daemonsets": unauthorized}, false},
		{"all roles are gone", nil, map[string]error{"daemonsets": forbidden, "customresourcedefinitions": forbidden}, true},
		{"the role for the DaemonSet never was there", []runtime.Object{theDefinition(false)}, map[string]error{"daemonsets": forbidden}, false},
		{"the definition is gone too", nil, map[string]error{"daemonsets": forbidden}, true},
		{"the definition is being deleted", []runtime.Object{theDefinition(true)}, map[string]error{"daemonsets": forbidden}, true},
		{"the API server does not answer", nil, map[string]error{"daemonsets": errors.New("connection refused"), "customresourcedefinitions": errors.New("connection refused")}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := metadataOf(t, tt.objects...)
			for resource, err := range tt.errs {
				f.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
			}
			require.Equal(t, tt.want, Removal{Metadata: f, Namespace: "kubevirt", DaemonSet: "virt-handler"}.Uninstalled(t.Context()))
		})
	}
}
