package frontproxy

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/review"
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
	return review.Allowed(ctx, a.Kube.AuthorizationV1().SubjectAccessReviews(), authorizationv1.SubjectAccessReviewSpec{
		User: u.Name, UID: u.UID, Groups: u.Groups, Extra: review.Extra(u.Extra), ResourceAttributes: &what,
	})
}
