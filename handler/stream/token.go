package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// tokenLifetime is that of a token, in seconds: the shortest that Kubernetes issues.
	tokenLifetime = 600
	// tokenLeast is how long a token that is used is at least good for.
	tokenLeast = 2 * time.Minute
	// tokensKept is how many tokens are remembered.
	tokensKept = 1024
)

// Tokens are the tokens of a pod's service account, one for each audience. The fields are
// not changed after the first use; the methods may be called from any goroutine. Nothing
// is requested before a token is asked for.
type Tokens struct {
	// Accounts requests tokens of the accounts of the pod's namespace. Required.
	Accounts corev1client.ServiceAccountInterface
	// Account is the name of the pod's account. Required.
	Account string
	// PodName and PodUID are those of the pod, to which the tokens are bound: they are
	// void when it is gone. Required.
	PodName string
	PodUID  types.UID

	mu    sync.Mutex
	known map[string]*issued
}

// issued is the token for an audience.
type issued struct {
	mu    sync.Mutex // held while it is requested
	token string
	until time.Time
}

// Token returns a token for the audience that is good for two minutes at least.
func (t *Tokens) Token(ctx context.Context, audience string) (string, error) {
	if t.PodName == "" || t.PodUID == "" {
		return "", errors.New("request a token: the name and the UID of the pod are not known (POD_NAME and POD_UID)")
	}
	k := t.of(audience)
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Until(k.until) > tokenLeast {
		return k.token, nil
	}
	answer, err := t.Accounts.CreateToken(ctx, t.Account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: new(int64(tokenLifetime)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: t.PodName, UID: t.PodUID},
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token of %s for %s: %w", t.Account, audience, err)
	}
	k.token, k.until = answer.Status.Token, answer.Status.ExpirationTimestamp.Time
	return k.token, nil
}

// Forget drops the token for the audience, if it is the one that is remembered. The next
// one that is asked for is new.
func (t *Tokens) Forget(audience, token string) {
	k := t.of(audience)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.token == token {
		k.token, k.until = "", time.Time{}
	}
}

// of is the token for the audience.
func (t *Tokens) of(audience string) *issued {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.known[audience]; k != nil {
		return k
	}
	if t.known == nil || len(t.known) >= tokensKept {
		t.known = map[string]*issued{} // they are issued again
	}
	t.known[audience] = &issued{}
	return t.known[audience]
}
