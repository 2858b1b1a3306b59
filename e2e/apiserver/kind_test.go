package apiserver

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
)

// census is an object of a kind of an embedder: it counts the VMIs of its namespace.
type census struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            struct {
		Instances int `json:"instances"`
	} `json:"status,omitempty"`
}

type censusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []census `json:"items"`
}

func (c *census) DeepCopyObject() runtime.Object {
	out := *c
	c.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (l *censusList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*census))
	}
	return &out
}

const censusFinalizer = "embedder.example.com/census"

// censuses are the kind: its definition, its entry in the Controller and its decision.
var (
	censusDefinition = vmi.Define[census, censusList](vmi.Definition{
		GroupVersionKind: schema.GroupVersionKind{Group: "embedder.example.com", Version: "v1", Kind: "Census"}, Plural: "censuses", Status: true,
	})
	censuses = controller.KindOf[*census, *censusList]{
		Definition: censusDefinition, Name: "census",
		Instances: func(v *vmi.VirtualMachineInstance, all informer.Lister[*census]) []string {
			var keys []string
			censuses, _ := all.Namespace(v.Namespace).List(labels.Everything()) // it never fails
			for _, c := range censuses {
				keys = append(keys, reconcile.Key(c))
			}
			return keys
		},
		Observe: func(_ context.Context, c *controller.Controller, o *census) (controller.Decide[*census], error) {
			instances, _ := c.Instances(o.Namespace)
			return func(o *census, _ *vmi.Finding) scheduler.Plan { return countIn(o, len(instances)) }, nil
		},
	}
)

func countIn(o *census, instances int) scheduler.Plan {
	switch {
	case o.DeletionTimestamp != nil:
		return scheduler.Plan{Actions: []scheduler.Action{scheduler.RemoveFinalizer{Finalizer: censusFinalizer}}}
	case len(o.Finalizers) == 0:
		return scheduler.Plan{Actions: []scheduler.Action{scheduler.AddFinalizer{Finalizer: censusFinalizer}}}
	case o.Status.Instances == instances:
		return scheduler.Plan{}
	}
	now := o.DeepCopyObject().(*census)
	now.Status.Instances = instances
	return scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*census]{Object: now}}}
}

const censusKind = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: censuses.embedder.example.com},
spec: {group: embedder.example.com, scope: Namespaced, names: {kind: Census, plural: censuses, singular: census, listKind: CensusList},
versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {instances: {type: integer}}}}}}}]}}`

// An embedder's kind, of a group of its own, is reconciled as the built-in ones are, by the
// account of the embedder.
func TestAKindOfAnEmbedderIsReconciled(t *testing.T) {
	s := newSpace(t)
	said, err := kubectl(t, censusKind, "apply", "--server-side", "-f", "-")
	require.NoError(t, err, said)
	t.Cleanup(func() {
		all, err := dynamic.NewForConfig(world.config)
		require.NoError(t, err)
		require.NoError(t, all.Resource(definitions).Delete(context.Background(), "censuses.embedder.example.com", metav1.DeleteOptions{}))
	})
	api, err := client.New(world.config)
	require.NoError(t, err)
	objects := client.Of(api, censusDefinition, s.name)
	eventually(t, func() error {
		_, err := objects.Create(t.Context(), &census{ObjectMeta: metav1.ObjectMeta{Name: "all"}}, metav1.CreateOptions{})
		return err // the kind is served a moment after it was made
	})
	s.control(func(c *controller.Config) {
		c.Kinds = []controller.Kind{censuses}
		c.Client = api
		c.Kube, err = kubernetes.NewForConfig(world.config)
		require.NoError(t, err)
	})
	counted := func(n int) {
		eventually(t, func() error {
			o, err := objects.Get(t.Context(), "all", metav1.GetOptions{})
			if err == nil && (o.Status.Instances != n || len(o.Finalizers) != 1) {
				err = fmt.Errorf("the census has %d VMIs and finalizers %v", o.Status.Instances, o.Finalizers)
			}
			return err
		})
	}
	for n, name := range []string{"a", "b"} {
		_, err := s.vmis.Create(t.Context(), guest(name), metav1.CreateOptions{})
		require.NoError(t, err)
		counted(n + 1)
	}
	require.NoError(t, s.vmis.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	counted(1)
	require.NoError(t, objects.Delete(t.Context(), "all", metav1.DeleteOptions{}))
	eventually(t, func() error {
		_, err := objects.Get(t.Context(), "all", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the census is still there, or cannot be read"), err)
		}
		return nil
	})
}
