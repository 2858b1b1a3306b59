package subresource

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/verb"
)

func TestOnlyATestThatFailsIsTriedAgain(t *testing.T) {
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "VirtualMachine"}, "x", field.ErrorList{field.Forbidden(field.NewPath("spec"), "a policy")})
	for name, tt := range map[string]struct {
		err     error
		changed bool
	}{
		"done":                 {nil, false},
		"a test failed":        {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value failed", 0, false), true},
		"another write":        {apierrors.NewConflict(verb.OfVM, "x", errors.New("modified")), true},
		"the object is wrong":  {refusal, false},
		"there is none":        {apierrors.NewNotFound(verb.OfVM, "x"), false},
		"no answer of the API": {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.changed {
				require.ErrorIs(t, patched(tt.err), errChanged)
				return
			}
			require.Equal(t, tt.err, patched(tt.err))
		})
	}
}
