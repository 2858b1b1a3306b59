package subresource

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

func TestAttackNoNamespaceTakesThePlacesOfTheOthers(t *testing.T) {
	t.Parallel()
	const inAll = 64
	p := newPlaces("open streams", inAll, 2)
	var leave []func()
	fill := func(namespace string) (n int) {
		for ; ; n++ {
			l, err := p.take(types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(n)})
			if err != nil {
				require.True(t, apierrors.IsTooManyRequests(err))
				require.ErrorContains(t, err, "namespace "+namespace)
				return n
			}
			leave = append(leave, l, l) // to leave twice is to leave once
		}
	}
	left := inAll
	for i := range 5 {
		n := fill("n" + strconv.Itoa(i))
		require.Equal(t, left/2, n)
		left -= n
	}
	require.Equal(t, 2, left)
	one := types.NamespacedName{Namespace: "late", Name: "a"}
	l, err := p.take(one)
	require.NoError(t, err)
	_, err = p.take(one)
	require.ErrorContains(t, err, "the VMIs of namespace late")
	l()
	for _, l := range leave {
		l()
	}
	require.Zero(t, p.taken)
	require.Empty(t, p.open)
	require.Empty(t, p.of)
	for range 2 {
		_, err := p.take(one)
		require.NoError(t, err)
	}
	_, err = p.take(one)
	require.ErrorContains(t, err, "VMI late/a has as many open streams")
	p.end()
	_, err = p.take(types.NamespacedName{Namespace: "b", Name: "b"})
	require.True(t, apierrors.IsServiceUnavailable(err))
}
