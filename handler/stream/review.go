package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/podvisor/podvisor/internal/expiring"
	"github.com/podvisor/podvisor/internal/review"
)

var (
	// ErrDenied is the class of the errors about a caller that is not virt-controller.
	ErrDenied = errors.New("not virt-controller")
	// ErrNotReviewed is the class of the errors about a caller that may be: the API
	// server did not say.
	ErrNotReviewed = errors.New("the token was not reviewed")
)

// podName is what Kubernetes says about a token that is bound to a pod.
const podName = "authentication.kubernetes.io/pod-name"

const (
	// reviewTimeout is how long the API server may take, and turnTimeout how long a review
	// waits for its turn.
	reviewTimeout = 5 * time.Second
	turnTimeout   = 5 * time.Second
	// reviewsKept is how many tokens are remembered. Each replica of virt-controller
	// has one or two.
	reviewsKept = 64
	// reviewsAtOnce is how many reviews the API server is asked for at a time, and
	// reviewsPerSource how many of one source there are, with those that wait for a place.
	// Every pod in the cluster can show something that looks like a token.
	reviewsAtOnce    = 32
	reviewsPerSource = 4
)

// ReviewsConfig is what [Reviews] need.
type ReviewsConfig struct {
	// Client asks the API server. Required.
	Client authenticationclient.TokenReviewInterface
	// Node is the node whose handler reviews. Required.
	Node string
	// User is whose tokens are admitted, as system:serviceaccount:kubevirt:virt-controller.
	// Required.
	User string
	// Lifetime is how long an answer is used. 0: a minute. A token that is revoked is
	// admitted for as long.
	Lifetime time.Duration
}

// Reviews admit virt-controller by its tokens. The methods may be called from any goroutine.
type Reviews struct {
	config ReviewsConfig

	known expiring.Map[review.Key, struct{}] // answers that admit
	queue *review.Queue[error]               // answers are why a token does not admit
}

// NewReviews makes Reviews.
func NewReviews(c ReviewsConfig) *Reviews {
	if c.Lifetime == 0 {
		c.Lifetime = time.Minute
	}
	return &Reviews{config: c, known: expiring.Map[review.Key, struct{}]{Most: reviewsKept},
		queue: review.NewQueue[error](review.Limits{AtOnce: reviewsAtOnce, PerSource: reviewsPerSource, Wait: turnTimeout})}
}

// Admit returns nil if the token is one of virt-controller for this node. Other tokens
// are an [ErrDenied]; without an answer of the API server the error is an [ErrNotReviewed].
// No error repeats the token.
//
// What does not even say that it is such a token is refused without a review. Reviews are
// limited, and the sources take turns: one with many waits for one with few.
func (r *Reviews) Admit(ctx context.Context, token, source string) error {
	key := review.KeyOf(token)
	if _, known := r.known.Get(key, time.Now()); known {
		return nil
	}
	if err := r.claims(token); err != nil {
		return err
	}
	denied, err := r.queue.Do(ctx, key, source, func(ctx context.Context) (error, error) {
		denied, err := r.review(ctx, token)
		if denied == nil && err == nil {
			// Others are not kept: there is no end of them.
			r.known.Put(key, struct{}{}, time.Now(), r.config.Lifetime)
		}
		return denied, err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReviewed, err)
	}
	return denied
}

// review says why the token does not admit. Another error is that the API server did not say.
func (r *Reviews) review(ctx context.Context, token string) (denied, err error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	audience := Audience(r.config.Node)
	reviewed, err := r.config.Client.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	s := reviewed.Status
	switch {
	case !s.Authenticated, !slices.Contains(s.Audiences, audience):
		denied = fmt.Errorf("%w: the token is none for %s", ErrDenied, audience)
	case s.User.Username != r.config.User:
		denied = fmt.Errorf("%w: the token is of %s", ErrDenied, s.User.Username)
	case len(s.User.Extra[podName]) != 1 || s.User.Extra[podName][0] == "":
		denied = fmt.Errorf("%w: the token is bound to no pod", ErrDenied)
	}
	return denied, nil
}

// claims refuses a token that does not say that it is one of the account, for this handler and
// bound to a pod.
func (r *Reviews) claims(token string) error {
	c, ok := review.ClaimsOf(token)
	audience := Audience(r.config.Node)
	switch {
	case !ok:
		return fmt.Errorf("%w: what it shows is no token of a service account", ErrDenied)
	case c.Subject != r.config.User:
		return fmt.Errorf("%w: the token is of another account", ErrDenied)
	case !slices.Contains(c.Audiences, audience):
		return fmt.Errorf("%w: the token is none for %s", ErrDenied, audience)
	case c.Pod == "":
		return fmt.Errorf("%w: the token is bound to no pod", ErrDenied)
	}
	return nil
}
