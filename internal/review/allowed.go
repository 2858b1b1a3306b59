package review

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// Allowed says whether the user may do what is asked, with the reason of the API server if not.
// An error is of the review itself: then the user is not allowed either.
func Allowed(ctx context.Context, c authorizationclient.SubjectAccessReviewInterface, asked authorizationv1.SubjectAccessReviewSpec) (allowed bool, reason string, err error) {
	r, err := c.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: asked}, metav1.CreateOptions{})
	if err != nil {
		return false, "", fmt.Errorf("review whether %s may: %w", asked.User, err)
	}
	if !r.Status.Allowed || r.Status.Denied {
		return false, r.Status.Reason, nil
	}
	return true, "", nil
}

// Extra is what else is known of a user, for a SubjectAccessReview.
func Extra[V ~[]string](of map[string]V) map[string]authorizationv1.ExtraValue {
	extra := make(map[string]authorizationv1.ExtraValue, len(of))
	for k, v := range of {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	return extra
}
