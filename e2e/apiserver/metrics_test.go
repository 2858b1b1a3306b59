package apiserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/review"
)

// scrape gets a path of a replica of virt-controller with a token, or without one.
func (v *verbs) scrape(ctx context.Context, port int, path, token string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s:%d%s", plan.ControlPlane.Addr(), port, path), nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := v.at(port, nil).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// monitor applies manifests/monitoring/scrape, and returns a token of its account.
func (v *verbs) monitor(t *testing.T) string {
	t.Helper()
	apply := exec.CommandContext(t.Context(), v.cluster.Kubectl, "--kubeconfig", v.cluster.Kubeconfig, "apply", "--server-side", "-k", "../../manifests/monitoring/scrape")
	out, err := apply.CombinedOutput()
	require.NoError(t, err, "%s", out)
	v.awaitMetricsOf(t, home, "podvisor-metrics")
	cfg, err := v.withToken(t.Context(), home, "podvisor-metrics", nil)
	require.NoError(t, err)
	return cfg.BearerToken
}

// awaitMetricsOf waits until the role of an account is in force, which takes a moment.
func (v *verbs) awaitMetricsOf(t *testing.T, namespace, account string) {
	t.Helper()
	eventually(t, func() error {
		allowed, reason, err := review.Allowed(t.Context(), v.kube.AuthorizationV1().SubjectAccessReviews(), authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":" + account, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		})
		if err == nil && !allowed {
			err = fmt.Errorf("%s may not: %s", account, reason)
		}
		return err
	})
}

func TestMetricsAreReadWithTheRoleForThem(t *testing.T) {
	v := newVerbs(t)
	ns := v.namespace(t)
	collector := v.monitor(t)
	stranger := v.account(t, ns, "stranger", nil).BearerToken
	admin := v.account(t, ns, "admin", clusterRole("admin")).BearerToken
	own := v.account(t, ns, "own", nil).BearerToken
	_, err := v.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "metrics-"},
		RoleRef: *clusterRole("podvisor-metrics"), Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "own"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	v.awaitMetricsOf(t, ns, "own")
	for _, tt := range []struct {
		name, path, token string
		code              int
		has               string
	}{
		{"the account of the manifests", "/metrics", collector, http.StatusOK, "kubevirt_rest_client_requests_total"},
		{"an account of another namespace with the role", "/metrics", own, http.StatusOK, "kubevirt_rest_client_requests_total"},
		{"no token", "/metrics", "", http.StatusUnauthorized, "needs the token"},
		{"a token that no one issued", "/metrics", "a.b.c", http.StatusUnauthorized, "none of this cluster"},
		{"an account without a role", "/metrics", stranger, http.StatusForbidden, "system:serviceaccount:" + ns + ":stranger may not get /metrics"},
		{"an administrator of a namespace", "/metrics", admin, http.StatusForbidden, ":admin may not get /metrics"},
		{"the path in another form", "//metrics/", stranger, http.StatusForbidden, "may not get /metrics"},
		{"a probe", "/healthz", "", http.StatusOK, "config-resource-version"},
		{"another probe", "/readyz", "", http.StatusOK, "config-resource-version"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, text, err := v.scrape(t.Context(), 8443, tt.path, tt.token)
			require.NoError(t, err)
			require.Equal(t, tt.code, code, text)
			require.Contains(t, text, tt.has)
			if tt.token != "" {
				require.NotContains(t, text, tt.token)
			}
		})
	}
}

// A component that was taken over sees the tokens of those who read its metrics.
func TestAttackATokenForMetricsIsGoodForNothingElse(t *testing.T) {
	v := newVerbs(t)
	v.monitor(t)
	ns := v.namespace(t)
	v.account(t, ns, "without", nil)
	may := func(namespace, account string) (out []string) {
		cfg, err := v.withToken(t.Context(), namespace, account, nil)
		require.NoError(t, err)
		kube, err := kubernetes.NewForConfig(cfg)
		require.NoError(t, err)
		for _, in := range []string{home, ns, metav1.NamespaceSystem} {
			r, err := kube.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
				&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: in}}, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Empty(t, r.Status.EvaluationError)
			require.False(t, r.Status.Incomplete)
			for _, rule := range r.Status.ResourceRules {
				out = append(out, fmt.Sprint(in, rule))
			}
			for _, rule := range r.Status.NonResourceRules {
				out = append(out, fmt.Sprint(in, rule.Verbs, rule.NonResourceURLs))
			}
		}
		return out
	}
	reader, other := may(home, "podvisor-metrics"), may(ns, "without")
	for _, in := range []string{home, ns, metav1.NamespaceSystem} {
		other = append(other, in+"[get] [/metrics]")
	}
	require.ElementsMatch(t, other, reader, "what an account without a role may, and to get the path")
	require.Greater(t, len(other), 3)
}
