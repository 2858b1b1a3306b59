package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// api is an API server that knows tokens, and what their users may.
type api struct {
	authenticationclient.TokenReviewInterface
	users map[string]string // by their tokens
	takes time.Duration
	err   error

	limit *rate.Limiter // of its client. Nil: none

	tokens, access, now, most atomic.Int64
	may                       accessReviews
}

// accessReviews are its SubjectAccessReviews.
type accessReviews struct {
	authorizationclient.SubjectAccessReviewInterface
	api     *api
	allowed map[string]bool
	err     error
}

func newAPI() *api {
	a := &api{users: map[string]string{"good": "collector", "other": "stranger"}}
	a.may = accessReviews{api: a, allowed: map[string]bool{"collector": true}}
	return a
}

func (a *api) Create(ctx context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	if a.limit != nil {
		if err := a.limit.Wait(ctx); err != nil {
			return nil, err
		}
	}
	a.tokens.Add(1)
	a.most.Store(max(a.most.Load(), a.now.Add(1)))
	defer a.now.Add(-1)
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	r = r.DeepCopy()
	if u, known := a.users[r.Spec.Token]; known {
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
			Username: u, UID: "7", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"p"}},
		}}
	}
	return r, nil
}

func (a *accessReviews) Create(_ context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	a.api.access.Add(1)
	want := authorizationv1.SubjectAccessReviewSpec{
		User: r.Spec.User, UID: "7", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"pod": {"p"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}
	if a.err != nil || fmt.Sprint(r.Spec) != fmt.Sprint(want) {
		return nil, errors.Join(a.err, errors.New("it is another question"))
	}
	r = r.DeepCopy()
	r.Status.Allowed = a.allowed[r.Spec.User]
	return r, nil
}

// scraped is an endpoint with a guard.
type scraped struct {
	guard *Guard
	h     http.Handler
}

func newScraped(a *api) scraped {
	g := NewGuard(GuardConfig{Tokens: a, Access: &a.may, Path: "/metrics"})
	return scraped{g, g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("series")) }))}
}

// get is the status and the text of an answer.
func (s scraped) get(token, source string) string {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.RemoteAddr = source + ":1"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
}

const own = "10.0.0.9"

func TestMetricsAreReadWithATokenOfAUserWithTheRight(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, token string
		api, access error
		want        string
	}{
		{"a user with the right", "good", nil, nil, "200 series"},
		{"no token", "", nil, nil, "401 a request for /metrics needs the token of a user that may get it"},
		{"a token of no one", "sham", nil, nil, "401 the token is none of this cluster, or is over"},
		{"a user without the right", "other", nil, nil, "403 stranger may not get /metrics"},
		{"the token is not reviewed", "good", errors.New("away"), nil, "503 the token was not reviewed: review a token: away"},
		{"the right is not reviewed", "good", nil, errors.New("away"), "503 the token was not reviewed: review whether collector may: away\nit is another question"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAPI()
			a.err, a.may.err = tt.api, tt.access
			require.Equal(t, tt.want, newScraped(a).get(tt.token, own))
		})
	}
	w := httptest.NewRecorder()
	newScraped(newAPI()).h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"))
}

func TestAnAnswerCountsForAMinuteAndAGoodOneForFiveWhileTheAPIServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := newScraped(a)
		asked := func() [2]int64 { return [2]int64{a.tokens.Load(), a.access.Load()} }
		for range 3 { // all within a minute
			require.Equal(t, "200 series", s.get("good", own))
			require.Equal(t, "401 the token is none of this cluster, or is over", s.get("sham", own))
			require.Equal(t, "403 stranger may not get /metrics", s.get("other", own))
			time.Sleep(20 * time.Second)
		}
		require.Equal(t, [2]int64{3, 2}, asked())
		time.Sleep(time.Second)
		require.Equal(t, "200 series", s.get("good", own))
		require.Equal(t, [2]int64{4, 3}, asked())

		a.err = errors.New("away")
		time.Sleep(2 * time.Minute)
		require.Equal(t, "200 series", s.get("good", own))
		require.Contains(t, s.get("other", own), "503 ", "one that was refused is not admitted, and not refused by an old answer")
		a.err, a.takes = nil, time.Hour // the connection hangs
		time.Sleep(2 * time.Minute)
		began := time.Now()
		require.Equal(t, "200 series", s.get("good", own))
		require.Equal(t, toReview, time.Since(began))
		time.Sleep(time.Minute)
		require.Contains(t, s.get("good", own), "503 ", "the answer is older than five minutes")

		a.takes = 0
		require.Equal(t, "200 series", s.get("good", own), "the API server is back")
		delete(a.may.allowed, "collector")
		time.Sleep(61 * time.Second)
		require.Equal(t, "403 collector may not get /metrics", s.get("good", own))
		a.err = errors.New("away")
		time.Sleep(61 * time.Second)
		require.Contains(t, s.get("good", own), "503 ", "the right was taken away before")
	})
}

func TestAttackShamTokensOfManyPodsKeepNoCollectorOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 20
		a := newAPI()
		a.takes = 100 * time.Millisecond
		for n := range 10 {
			a.users[fmt.Sprint("good-", n)] = "collector"
		}
		s := newScraped(a)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var next atomic.Int64
		for pod := range pods {
			for range 6 { // each at once, again and again
				all.Go(func() {
					for ctx.Err() == nil {
						if got := s.get(fmt.Sprint("sham-", next.Add(1)), fmt.Sprint("10.0.1.", pod)); strings.HasPrefix(got, "200") {
							t.Error("a sham token is admitted")
						}
						time.Sleep(50 * time.Millisecond)
					}
				})
			}
		}
		time.Sleep(time.Second)
		for n := range 10 {
			began := time.Now()
			require.Equal(t, "200 series", s.get(fmt.Sprint("good-", n), own))
			require.Less(t, time.Since(began), toWait)
		}
		cancel()
		all.Wait()
		require.EqualValues(t, atOnce, a.most.Load())
		require.Greater(t, int(a.tokens.Load()), badKept/2, "the pods did attack")
		require.LessOrEqual(t, s.guard.bad.Len(), badKept)
		require.Equal(t, 10, s.guard.good.Len())
		require.Zero(t, s.guard.queue.Len())
	})
}

func TestAttackShamTokensUpToTheLimitOfReviewsKeepNoCollectorOut(t *testing.T) {
	const (
		pods   = 100
		period = 30 * time.Second // of the scrapes
		ahead  = 6 * time.Second  // of each, the pods begin
	)
	opaque := func(n int64) string { return fmt.Sprint("sham-", n) }
	account := func(n int64) string { return jwt(fmt.Sprintf(`{"sub":"system:serviceaccount:a:b","jti":"%d"}`, n)) }
	same := func(int) string { return "good" }
	another := func(n int) string { return fmt.Sprint("good-", n) }
	for _, tt := range []struct {
		name   string
		sham   func(int64) string
		token  func(int) string
		before bool // the reader was admitted before the flood
		beside bool // it has the address of a pod that takes part
		tries  int
		least  int // of them are answered
	}{
		{"a reader that was admitted before", opaque, same, true, false, 60, 60},
		{"one with the address of a pod that takes part", opaque, same, true, true, 15, 15},
		{"a new reader", opaque, same, false, false, 10, 1},
		{"a new reader, and tokens like those of accounts", account, same, false, false, 10, 1},
		{"a reader with another token each time", opaque, another, false, false, 10, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAPI()
				a.takes, a.limit = 5*time.Millisecond, rate.NewLimiter(10, 20) // as internal/ops has them
				for n := range tt.tries {
					a.users[another(n)] = "collector"
				}
				s := newScraped(a)
				if tt.before {
					require.Equal(t, "200 series", s.get(tt.token(0), own))
				}
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				var next atomic.Int64
				began := time.Now()
				for pod := range pods {
					source := fmt.Sprint("10.0.1.", pod)
					if tt.beside && pod == 0 {
						source = own
					}
					for range 2 {
						all.Go(func() {
							for ctx.Err() == nil {
								s.get(tt.sham(next.Add(1)), source)
								time.Sleep(10 * time.Millisecond)
								if time.Since(began)%period > ahead+2*time.Second { // no reader comes now
									time.Sleep(period - time.Since(began)%period)
								}
							}
						})
					}
				}
				time.Sleep(ahead)
				answered, last := 0, ""
				for n := range tt.tries {
					tried := time.Now()
					if got := s.get(tt.token(n), own); got == "200 series" {
						answered++
					} else {
						last = got
					}
					time.Sleep(period - time.Since(tried))
				}
				cancel()
				all.Wait()
				require.GreaterOrEqual(t, answered, tt.least, last)
				require.Greater(t, int(a.tokens.Load()), 80*tt.tries, "the pods did use up the limit")
				require.Zero(t, s.guard.queue.Len())
				require.Zero(t, s.guard.known.Len())
			})
		})
	}
}

func TestATokenThatWasAdmittedIsNotAdmittedAgainWithoutAReview(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration
		away  error
		users map[string]string
		want  string
	}{
		{"the API server is away", 6 * time.Minute, errors.New("away"), nil, "503 the token was not reviewed: review a token: away"},
		{"it was revoked", time.Hour, nil, map[string]string{}, "401 " + noToken.text},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI()
				s := newScraped(a)
				require.Equal(t, "200 series", s.get("good", own))
				time.Sleep(tt.after)
				_, known := s.guard.good.Get(KeyOf("good"), time.Now())
				require.True(t, known)
				a.err, a.users = tt.away, tt.users
				require.Equal(t, tt.want, s.get("good", own))
				_, known = s.guard.good.Get(KeyOf("good"), time.Now())
				require.Equal(t, tt.away != nil, known, "a token that is refused has no places of its own")
			})
		})
	}
}
