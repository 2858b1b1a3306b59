package stream

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
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
					if err := r.Admit(t.Context(), "token", "10.0.0.9"); !errors.Is(err, want) {
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
		require.Empty(t, r.asked)
		require.Empty(t, r.sources)
	})
}
