package admission

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

// allowWhile are the webhooks, by their paths, except that they allow everything
// while foreign reports an installation of KubeVirt itself: then the objects are
// KubeVirt's.
func allowWhile(foreign func() string, webhooks map[string]http.Handler) map[string]http.Handler {
	allow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return allowed() })
	})
	limit, out := new(gate), map[string]http.Handler{}
	for at, h := range webhooks {
		out[at] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if foreign() == "" {
				h.ServeHTTP(w, r)
				return
			}
			limit.Limit(allow).ServeHTTP(w, r)
		})
	}
	return out
}
