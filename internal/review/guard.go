package review

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/podvisor/podvisor/internal/expiring"
)

const (
	// fresh is how long an answer is used without another question. goodWhileAway is how long
	// one that admits is used if the API server does not answer.
	fresh         = time.Minute
	goodWhileAway = 5 * time.Minute
	// knownFor is how long a token that was admitted is reviewed before those that were not.
	knownFor = 24 * time.Hour
	// toReview is how long both reviews may take, and toWait how long they wait for their turn.
	// A scrape that has waited for both has still the 5 s that the statistics of VMIs take,
	// within the 10 s that Prometheus waits.
	toReview = 3 * time.Second
	toWait   = time.Second
	// goodKept and badKept are how many answers are kept. A cluster has a few collectors of
	// metrics; bad ones displace no good one.
	goodKept = 64
	badKept  = 256
	// atOnce is how many reviews of other tokens than known ones there are at a time, and
	// perSource how many of one source. The limit of requests of the clients lets them wait
	// for each other, so more would take the time of toReview from each.
	atOnce    = 8
	perSource = 2
	// knownAtOnce is how many reviews of known tokens there are at a time. The collectors may
	// have one source.
	knownAtOnce = 4
)

// GuardConfig is what a [Guard] needs.
type GuardConfig struct {
	// Tokens and Access ask the API server. Required.
	Tokens authenticationclient.TokenReviewInterface
	Access authorizationclient.SubjectAccessReviewInterface
	// Path is what is read, as /metrics: nonResourceURLs of a ClusterRole name it. Required.
	Path string
	// Logger takes who is refused, at debug level. Nil: nothing is logged.
	Logger *slog.Logger
}

// Guard lets users with a token read a path of a server, if a role gives them the right to get
// the path. An answer of the API server counts for a minute. One that admits counts for
// five minutes while the API server does not answer. Tokens that were admitted within a day have
// places for their next reviews that no other token takes. A token of a service account that is
// over is refused without a review. The methods may be called from any goroutine.
type Guard struct {
	config GuardConfig
	known  *Queue[verdict]              // of tokens that were admitted
	queue  *Queue[verdict]              // of all others
	good   expiring.Map[Key, time.Time] // when they were reviewed, also if the answer counts no more
	bad    expiring.Map[Key, verdict]
}

// verdict is the status and the text of an answer.
type verdict struct {
	status int
	text   string
}

var (
	admitted = verdict{status: http.StatusOK}
	noToken  = verdict{http.StatusUnauthorized, "the token is none of this cluster, or is over"}
)

// NewGuard makes a Guard.
func NewGuard(c GuardConfig) *Guard {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Guard{
		config: c,
		known:  NewQueue[verdict](Limits{AtOnce: knownAtOnce, PerSource: goodKept, Wait: toWait}),
		queue:  NewQueue[verdict](Limits{AtOnce: atOnce, PerSource: perSource, Wait: toWait}),
		good:   expiring.Map[Key, time.Time]{Most: goodKept},
		bad:    expiring.Map[Key, verdict]{Most: badKept},
	}
}

// Protect is a handler that answers as next does to users with the right to read the path. Others get
// 401 without a token that counts, 403 without the right, and 503 if the API server does not
// say.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := g.judge(r)
		if v == admitted {
			next.ServeHTTP(w, r)
			return
		}
		g.config.Logger.Debug("refused a request", "path", g.config.Path, "source", r.RemoteAddr, "status", v.status, "reason", v.text)
		if v.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		http.Error(w, v.text, v.status)
	})
}

// judge is the verdict on a request.
func (g *Guard) judge(r *http.Request) verdict {
	token, ok := Bearer(r)
	if !ok {
		return verdict{http.StatusUnauthorized, "a request for " + g.config.Path + " needs the token of a user that may get it"}
	}
	key, now := KeyOf(token), time.Now()
	reviewed, known := g.good.Get(key, now)
	if known && now.Sub(reviewed) <= fresh {
		return admitted
	}
	if v, ok := g.bad.Get(key, now); ok {
		return v
	}
	if c, ok := ClaimsOf(token); ok && c.over(now) {
		return noToken
	}
	queue := g.queue
	if known {
		queue = g.known
	}
	v, err := queue.Do(r.Context(), key, Source(r.RemoteAddr).String(), func(ctx context.Context) (verdict, error) {
		v, err := g.review(ctx, token)
		if err == nil {
			g.remember(key, v)
		}
		return v, err
	})
	switch {
	case err == nil:
		return v
	case known && now.Sub(reviewed) <= goodWhileAway:
		return admitted
	default:
		return verdict{http.StatusServiceUnavailable, fmt.Sprintf("the token was not reviewed: %v", err)}
	}
}

func (g *Guard) remember(key Key, v verdict) {
	now := time.Now()
	if v == admitted {
		g.good.Put(key, now, now, knownFor)
		return
	}
	g.good.Delete(key)
	g.bad.Put(key, v, now, fresh)
}

// review asks whose the token is, and whether that user may.
func (g *Guard) review(ctx context.Context, token string) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, toReview)
	defer cancel()
	r, err := g.config.Tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, fmt.Errorf("review a token: %w", err)
	}
	u := r.Status.User
	switch {
	case !r.Status.Authenticated:
		return noToken, nil
	case u.Username == "":
		return verdict{}, errors.New("review a token: it is of a user without a name")
	}
	ok, _, err := Allowed(ctx, g.config.Access, authorizationv1.SubjectAccessReviewSpec{
		User: u.Username, UID: u.UID, Groups: u.Groups, Extra: Extra(u.Extra),
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: g.config.Path, Verb: "get"},
	})
	switch {
	case err != nil:
		return verdict{}, err
	case !ok:
		return verdict{http.StatusForbidden, u.Username + " may not get " + g.config.Path}, nil
	}
	return admitted, nil
}
