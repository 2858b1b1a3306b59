package serve

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

// Aside are the webhooks, by their paths, but for the time in which foreign says
// that KubeVirt itself is installed: then the objects are KubeVirt's, and all are
// let through.
func Aside(foreign func() string, webhooks map[string]http.Handler) map[string]http.Handler {
	out := map[string]http.Handler{}
	for at, h := range webhooks {
		out[at] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if foreign() == "" {
				h.ServeHTTP(w, r)
				return
			}
			answer(w, r, nil, func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return allowed() })
		})
	}
	return out
}
