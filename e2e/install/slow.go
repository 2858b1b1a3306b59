package install

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Slow has the API server wait for the answer of each webhook that is chosen by its name as
// long as it can, which is 30 seconds. On a busy host virt-controller may take longer than the
// manifests let it, and a webhook that is late is ignored.
func Slow(ctx context.Context, kube kubernetes.Interface, chosen func(name string) bool) error {
	const name = "virt-controller.kubevirt.io"
	mutating, validating := kube.AdmissionregistrationV1().MutatingWebhookConfigurations(), kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	m, err := mutating.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("let webhooks take longer: %w", err)
	}
	v, err := validating.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("let webhooks take longer: %w", err)
	}
	var p, q []operation
	for i, w := range m.Webhooks {
		p = slower(p, i, chosen(w.Name))
	}
	for i, w := range v.Webhooks {
		q = slower(q, i, chosen(w.Name))
	}
	if _, err := mutating.Patch(ctx, name, types.JSONPatchType, text(p), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("let webhooks take longer: %w", err)
	}
	if _, err := validating.Patch(ctx, name, types.JSONPatchType, text(q), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("let webhooks take longer: %w", err)
	}
	return nil
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value int    `json:"value"`
}

// slower adds to the patch that the webhook of this index may take long, if it is chosen.
func slower(p []operation, i int, chosen bool) []operation {
	if !chosen {
		return p
	}
	return append(p, operation{"add", fmt.Sprintf("/webhooks/%d/timeoutSeconds", i), 30})
}

func text(p []operation) []byte {
	if len(p) == 0 {
		return []byte("[]")
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has strings and numbers only
	}
	return b
}
