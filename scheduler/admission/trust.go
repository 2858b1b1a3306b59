package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// pathOf is the secret path of the webhook of this name, or "" if it has none,
// or there is none yet.
func (k *Certificates) pathOf(webhook string) string {
	switch kind, _, _ := strings.Cut(webhook, "."); kind {
	case "evictions":
		return k.EvictionPath()
	case "uninstall":
		return k.UninstallPath()
	}
	return ""
}

// registered is what a webhook configuration holds of one webhook: where it is,
// and which authorities sign its certificate.
type registered struct {
	name   string
	config admissionregistrationv1.WebhookClientConfig
}

// trust writes the authorities and the secret paths into our webhooks, where they
// are missing.
func (k *Certificates) trust(ctx context.Context, authorities []byte) error {
	registration := k.cfg.Kube.AdmissionregistrationV1()
	mutating, validating := k.registered()
	return errors.Join(
		k.write(mutating, authorities, func(patch []byte) error {
			_, err := registration.MutatingWebhookConfigurations().Patch(ctx, k.cfg.Webhooks, types.JSONPatchType, patch, metav1.PatchOptions{})
			return err
		}),
		k.write(validating, authorities, func(patch []byte) error {
			_, err := registration.ValidatingWebhookConfigurations().Patch(ctx, k.cfg.Webhooks, types.JSONPatchType, patch, metav1.PatchOptions{})
			return err
		}))
}

// holdFinalizer keeps the validating webhooks in force after a deletion of Podvisor
// that they have refused: nothing can refuse their own.
const holdFinalizer = "podvisor.io/uninstall"

// Hold puts a finalizer on the ValidatingWebhookConfiguration, which stays in force
// with it also when it is deleted, or removes it. One that does not exist is not
// held.
func (k *Certificates) Hold(ctx context.Context, held bool) error {
	c, exists := cached[*admissionregistrationv1.ValidatingWebhookConfiguration](k.validating, k.cfg.Webhooks)
	if exists && slices.Contains(c.Finalizers, holdFinalizer) == held {
		return nil
	}
	list := "finalizers"
	if !held {
		list = "$deleteFromPrimitiveList/finalizers"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{list: []string{holdFinalizer}}})
	if err != nil {
		return err
	}
	_, err = k.cfg.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, k.cfg.Webhooks, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if ignoreNotFound(err) != nil {
		return fmt.Errorf("patch the finalizers of the validating webhook configuration %s: %w", k.cfg.Webhooks, err)
	}
	return nil
}

// trusted says that the cached webhook configurations have the authorities.
func (k *Certificates) trusted(authorities []byte) bool {
	if !k.mutating.HasSynced() || !k.validating.HasSynced() {
		return false
	}
	mutating, validating := k.registered()
	return len(k.changes(mutating, authorities)) == 0 && len(k.changes(validating, authorities)) == 0
}

// registered are the cached webhooks of both configurations.
func (k *Certificates) registered() (mutating, validating []registered) {
	if c, ok := cached[*admissionregistrationv1.MutatingWebhookConfiguration](k.mutating, k.cfg.Webhooks); ok {
		for _, w := range c.Webhooks {
			mutating = append(mutating, registered{w.Name, w.ClientConfig})
		}
	}
	if c, ok := cached[*admissionregistrationv1.ValidatingWebhookConfiguration](k.validating, k.cfg.Webhooks); ok {
		for _, w := range c.Webhooks {
			validating = append(validating, registered{w.Name, w.ClientConfig})
		}
	}
	return mutating, validating
}

// cached is the configuration of the name in the informer's cache, if there is
// one.
func cached[T any](i cache.SharedIndexInformer, name string) (t T, ok bool) {
	o, found, err := i.GetStore().GetByKey(name)
	if err != nil || !found {
		return t, false
	}
	t, ok = o.(T)
	return t, ok
}

// write sends the patch of a configuration, if there is something to change.
func (k *Certificates) write(all []registered, authorities []byte, send func(patch []byte) error) error {
	changes := k.changes(all, authorities)
	if len(changes) == 0 {
		return nil
	}
	patch, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	if err := send(patch); err != nil {
		return fmt.Errorf("patch the webhook configurations %s: %w", k.cfg.Webhooks, err)
	}
	k.log.Info("wrote authority and path into the webhook configuration", "name", k.cfg.Webhooks)
	return nil
}

// changes are the operations that give our webhooks the authorities, and those with
// a secret path this path. Each tests first that the webhook has not moved in the
// list.
func (k *Certificates) changes(all []registered, authorities []byte) []operation {
	var out []operation
	for i, c := range all {
		s := c.config.Service
		if s == nil || s.Namespace != k.cfg.Namespace || s.Name != k.cfg.Service {
			continue
		}
		at := fmt.Sprintf("/webhooks/%d", i)
		same := operation{"test", at + "/name", c.name}
		if !bytes.Equal(c.config.CABundle, authorities) {
			out = append(out, same, operation{"add", at + "/clientConfig/caBundle", authorities})
		}
		if path := k.pathOf(c.name); path != "" && (s.Path == nil || *s.Path != path) {
			out = append(out, same, operation{"add", at + "/clientConfig/service/path", path})
		}
	}
	return out
}
