package authority

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/internal/jsonpatch"
)

// registration is an object by which the API server knows where virt-controller is,
// and the authority of its certificate.
type registration struct {
	// what it is called in messages, and its name.
	what, name string
	informer   cache.SharedIndexInformer
	// missing are the operations that give the cached object what it does not have.
	missing func(o any, authorities []byte, token string) []jsonpatch.Operation
	// patch sends operations.
	patch func(ctx context.Context, operations []byte) error
}

func mutatingWebhooks(c Config) registration {
	client := c.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	return registration{
		what: "MutatingWebhookConfiguration", name: c.Webhooks,
		informer: admissioninformers.NewFilteredMutatingWebhookConfigurationInformer(c.Kube, 0, cache.Indexers{}, named(c.Webhooks)),
		missing: func(o any, authorities []byte, token string) []jsonpatch.Operation {
			var out []jsonpatch.Operation
			for i, w := range o.(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks {
				out = append(out, c.missing(i, w.Name, w.ClientConfig, authorities, token)...)
			}
			return out
		},
		patch: func(ctx context.Context, operations []byte) error {
			_, err := client.Patch(ctx, c.Webhooks, types.JSONPatchType, operations, metav1.PatchOptions{})
			return err
		},
	}
}

func validatingWebhooks(c Config) registration {
	client := c.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	return registration{
		what: validatingKind, name: c.Webhooks,
		informer: admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(c.Kube, 0, cache.Indexers{}, named(c.Webhooks)),
		missing: func(o any, authorities []byte, token string) []jsonpatch.Operation {
			var out []jsonpatch.Operation
			for i, w := range o.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks {
				out = append(out, c.missing(i, w.Name, w.ClientConfig, authorities, token)...)
			}
			return out
		},
		patch: func(ctx context.Context, operations []byte) error {
			_, err := client.Patch(ctx, c.Webhooks, types.JSONPatchType, operations, metav1.PatchOptions{})
			return err
		},
	}
}

// apiService is the APIService of this name. What it says of the Service is left alone:
// one that sends requests elsewhere is another's.
func apiService(c Config, name string) registration {
	client := c.Dynamic.Resource(certificate.APIServiceResource)
	return registration{
		what: "APIService", name: name,
		informer: dynamicinformer.NewFilteredDynamicInformer(c.Dynamic, certificate.APIServiceResource, metav1.NamespaceAll, 0, cache.Indexers{}, named(name)).Informer(),
		missing: func(o any, authorities []byte, _ string) []jsonpatch.Operation {
			stored := o.(*unstructured.Unstructured).Object
			namespace, _, _ := unstructured.NestedString(stored, "spec", "service", "namespace")
			service, _, _ := unstructured.NestedString(stored, "spec", "service", "name")
			if namespace != c.Namespace || service != c.Service {
				return nil
			}
			is, _, _ := unstructured.NestedString(stored, "spec", "caBundle")
			if bundle := base64.StdEncoding.EncodeToString(authorities); is != bundle {
				return []jsonpatch.Operation{jsonpatch.Test("/spec/service/name", c.Service), jsonpatch.Test("/spec/service/namespace", c.Namespace), jsonpatch.Add("/spec/caBundle", bundle)}
			}
			return nil
		},
		patch: func(ctx context.Context, operations []byte) error {
			_, err := client.Patch(ctx, name, types.JSONPatchType, operations, metav1.PatchOptions{})
			return err
		},
	}
}

const validatingKind = "ValidatingWebhookConfiguration"

// missing are the operations that give one webhook the authorities and its secret
// path, if it is one of ours. Each tests first that the webhook has not moved in the
// list.
func (c Config) missing(i int, name string, have admissionregistrationv1.WebhookClientConfig, authorities []byte, token string) []jsonpatch.Operation {
	s := have.Service
	if s == nil || s.Namespace != c.Namespace || s.Name != c.Service {
		return nil
	}
	var out []jsonpatch.Operation
	at := fmt.Sprintf("/webhooks/%d", i)
	isTheSame := jsonpatch.Test(at+"/name", name)
	if !bytes.Equal(have.CABundle, authorities) {
		out = append(out, isTheSame, jsonpatch.Add(at+"/clientConfig/caBundle", authorities))
	}
	if path := certificate.Path(name, token); s.Path == nil || *s.Path != path {
		out = append(out, isTheSame, jsonpatch.Add(at+"/clientConfig/service/path", path))
	}
	return out
}

// register writes the authorities and the secret paths into the registrations, where
// they are missing.
func (a *Authority) register(ctx context.Context, authorities []byte, token string) error {
	var errs []error
	for _, r := range a.registrations {
		operations := r.lacks(authorities, token)
		if len(operations) == 0 {
			continue
		}
		patch, err := json.Marshal(operations)
		if err == nil {
			err = r.patch(ctx, patch)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("patch %s %s: %w", r.what, r.name, err))
			continue
		}
		a.log.Info("wrote authority and path", "kind", r.what, "name", r.name)
	}
	return errors.Join(errs...)
}

// lacks are the operations that the cached object still needs: none if there is no
// such object.
func (r registration) lacks(authorities []byte, token string) []jsonpatch.Operation {
	o, ok := cached[any](r.informer, r.name)
	if !ok {
		return nil
	}
	return r.missing(o, authorities, token)
}

// registered says that the cached registrations have the authorities.
func (a *Authority) registered(authorities []byte, token string) bool {
	for _, r := range a.registrations {
		if !r.informer.HasSynced() || len(r.lacks(authorities, token)) > 0 {
			return false
		}
	}
	return true
}
