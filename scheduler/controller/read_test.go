package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A user may name such a claim. As an error it would be read again without end, and the
// VMI would not say why it waits.
func TestAnObjectWithANameThatNoneCanHaveDoesNotExist(t *testing.T) {
	t.Parallel()
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"}) // the client refuses such names itself
	require.NoError(t, err)
	for _, name := range []string{"", ".", "..", "../kube-system/x", "a/b", "a%2fb"} {
		found, err := read(t.Context(), "claim", name, kube.CoreV1().PersistentVolumeClaims("default").Get)
		require.NoError(t, err, name)
		require.Nil(t, found, name)
	}
	_, err = read(t.Context(), "claim", "data", kube.CoreV1().PersistentVolumeClaims("default").Get)
	require.Error(t, err, "other names are asked for")
}
