package jsonpatch

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnOperationHasItsValueUnlessItRemoves(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal([]Operation{{"test", "/a", nil}, {"add", "/b", []string{"c"}}, {"remove", "/d", nil}})
	require.NoError(t, err)
	require.Equal(t, `[{"op":"test","path":"/a","value":null},{"op":"add","path":"/b","value":["c"]},{"op":"remove","path":"/d"}]`, string(b))
}

func TestAKeyIsOneElementOfAPath(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a.io~1b~0c", Escape("a.io/b~c"))
}
