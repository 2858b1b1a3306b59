package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/causes"
	"github.com/podvisor/podvisor/e2e/images"
)

// How long it takes is not tested here: `make causes` measures it.
func TestTheCausesOfTheCommonestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for _, m := range causes.All(images.Reference) {
		if m.Alone {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			c, err := causes.Measure(ctx, causes.Site{Kube: world.kube, VMIs: world.vmis, Namespace: s.name}, m)
			require.NoError(t, err)
			t.Log(causes.Line(m, c))
		})
	}
}
