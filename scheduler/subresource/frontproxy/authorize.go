package frontproxy

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Authorizer asks the API server what users may. Its methods may be called at the same
// time.
type Authorizer struct {
	// Kube creates the SubjectAccessReviews. Required.
	Kube kubernetes.Interface
}

// Allowed says whether the user may do it, with the reason of the API server if not. An
// error is of the review itself: then the user is not allowed either.
func (a Authorizer) Allowed(ctx context.Context, u User, what authorizationv1.ResourceAttributes) (allowed bool, reason string, err error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(u.Extra))
	for k, v := range u.Extra {
		extra[k] = v
	}
	review, err := a.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: u.Name, UID: u.UID, Groups: u.Groups, Extra: extra, ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, "", fmt.Errorf("review whether %s may: %w", u.Name, err)
	}
	if !review.Status.Allowed || review.Status.Denied {
		return false, review.Status.Reason, nil
	}
	return true, "", nil
}
