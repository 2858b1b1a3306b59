package stream

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	kubetesting "k8s.io/client-go/testing"
)

// Many users open streams when the answer about the token is over.
func TestATokenIsReviewedOnceForAllWhoShowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const owner = "system:serviceaccount:kubevirt:virt-controller"
		reviews, fails := 0, true
		kube := fake.NewClientset()
		kube.PrependReactor("create", "tokenreviews", func(a kubetesting.Action) (bool, runtime.Object, error) {
			reviews++
			time.Sleep(time.Second)
			if fails {
				return true, nil, errors.New("the API server is busy")
			}
			v := a.(kubetesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
			v.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: v.Spec.Audiences,
				User: authenticationv1.UserInfo{Username: owner, Extra: map[string]authenticationv1.ExtraValue{podName: {"p"}}}}
			return true, v, nil
		})
		r := NewReviews(ReviewsConfig{Client: kube.AuthenticationV1().TokenReviews(), Node: "n1", User: owner})
		all := func(want error) {
			var wg sync.WaitGroup
			for range 5 * reviewsPerSource {
				wg.Go(func() {
					if err := r.Admit(t.Context(), signed("right", owner, "p", Audience("n1")), "10.0.0.9"); !errors.Is(err, want) {
						t.Errorf("the error is %v, not %v", err, want)
					}
				})
			}
			wg.Wait()
		}
		all(ErrNotReviewed)
		require.Equal(t, 1, reviews)
		fails = false
		all(nil)
		require.Equal(t, 2, reviews)
		time.Sleep(2 * time.Minute)
		all(nil)
		require.Equal(t, 3, reviews)
		require.Zero(t, r.queue.Len())
	})
}

// lasting makes each review last, one beside the others, which a fake Clientset does not.
type lasting struct {
	authenticationclient.TokenReviewInterface
	takes time.Duration
}

func (l lasting) Create(ctx context.Context, r *authenticationv1.TokenReview, o metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	time.Sleep(l.takes)
	return l.TokenReviewInterface.Create(ctx, r, o)
}

func TestAttackShamTokensOfManyPodsKeepNoOtherOut(t *testing.T) {
	const owner, pods = "system:serviceaccount:kubevirt:virt-controller", 20
	for name, tt := range map[string]struct {
		sham func(n int) string
		// most is how many reviews the attack may cause beside those of the others.
		most int64
	}{
		"that are no tokens":               {func(n int) string { return fmt.Sprint("sham-", n) }, 0},
		"of other accounts":                {func(n int) string { return signed(fmt.Sprint(n), "system:serviceaccount:t:a", "p", Audience("n1")) }, 0},
		"with the claims of the right one": {func(n int) string { return signed(fmt.Sprint(n), owner, "p", Audience("n1")) }, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reviews atomic.Int64
				right := func(n int) string { return signed(fmt.Sprint("right-", n), owner, "p", Audience("n1")) }
				kube := fake.NewClientset()
				kube.PrependReactor("create", "tokenreviews", func(a kubetesting.Action) (bool, runtime.Object, error) {
					reviews.Add(1)
					v := a.(kubetesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
					for n := range 10 {
						if v.Spec.Token == right(n) {
							v.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: v.Spec.Audiences,
								User: authenticationv1.UserInfo{Username: owner, Extra: map[string]authenticationv1.ExtraValue{podName: {"p"}}}}
						}
					}
					return true, v, nil
				})
				r := NewReviews(ReviewsConfig{Client: lasting{kube.AuthenticationV1().TokenReviews(), 200 * time.Millisecond}, Node: "n1", User: owner})
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				var next atomic.Int64
				for pod := range pods {
					for range 6 { // each at once, again and again
						all.Go(func() {
							for ctx.Err() == nil {
								if r.Admit(ctx, tt.sham(int(next.Add(1))), fmt.Sprint("10.0.1.", pod)) == nil {
									t.Error("a sham token is admitted")
								}
								time.Sleep(100 * time.Millisecond)
							}
						})
					}
				}
				time.Sleep(time.Second)
				for n := range 10 {
					began := time.Now()
					require.NoError(t, r.Admit(t.Context(), right(n), "10.0.0.9"))
					require.Less(t, time.Since(began), 2*time.Second)
				}
				cancel()
				all.Wait()
				require.LessOrEqual(t, reviews.Load()-10, tt.most)
				require.Zero(t, r.queue.Len())
			})
		})
	}
}

func FuzzClaims(f *testing.F) {
	f.Add(signed("a", "u", "p", "aud"))
	f.Add("a.e30.b")
	f.Add("..")
	f.Add("a." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"u","aud":"handler.podvisor.io/n1","kubernetes.io":{"pod":{"name":"p"}}}`)) + ".b")
	r := NewReviews(ReviewsConfig{Node: "n1", User: "u"})
	f.Fuzz(func(t *testing.T, token string) {
		if err := r.claims(token); err != nil {
			require.ErrorIs(t, err, ErrDenied)
		}
	})
}
