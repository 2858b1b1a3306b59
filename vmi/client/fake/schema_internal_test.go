package fake

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/podvisor/podvisor/vmi/kinds"
)

// listAt is the list at the path, or nil if it is inside what is replaced as a
// whole.
func listAt(t *testing.T, p typed.ParseableType, path string) *schema.List {
	t.Helper()
	at := p.TypeRef
	for step := range strings.SplitSeq(path, ".") {
		if at.NamedType != nil && *at.NamedType == whole {
			return nil
		}
		name, elements := strings.CutSuffix(step, "[]")
		a, ok := p.Schema.Resolve(at)
		require.True(t, ok && a.Map != nil, "%s: nothing is known of %s", path, step)
		f, ok := a.FindField(name)
		require.True(t, ok, "%s: there is no field %s", path, name)
		at = f.Type
		if elements {
			l, ok := p.Schema.Resolve(at)
			require.True(t, ok && l.List != nil, path)
			at = l.List.ElementType
		}
	}
	a, ok := p.Schema.Resolve(at)
	require.True(t, ok, path)
	return a.List
}

func TestListsAreMergedAsTheDefinitionSays(t *testing.T) {
	lists := 0
	for _, d := range kinds.Definitions() {
		p := schemaOf(d)
		require.True(t, p.IsValid(), d.Kind)
		lists += len(d.ListKeys)
		for path, keys := range d.ListKeys {
			l := listAt(t, p, path)
			if strings.Contains(path, "accessCredentials[]") {
				require.Nil(t, l)
				continue
			}
			require.NotNil(t, l, "%s: %s", d.Kind, path)
			require.Equal(t, schema.Associative, l.ElementRelationship, "%s: %s", d.Kind, path)
			require.ElementsMatch(t, keys, l.Keys, "%s: %s", d.Kind, path)
		}
		require.Equal(t, []string{"uid"}, listAt(t, p, "metadata.ownerReferences").Keys)
	}
	require.NotZero(t, lists)
}

func TestEveryTypeHasOneSchema(t *testing.T) {
	for _, d := range kinds.Definitions() {
		seen := map[string]bool{}
		for _, s := range schemaOf(d).Schema.Types {
			require.False(t, seen[s.Name], "%s: two schemas are called %s", d.Kind, s.Name)
			seen[s.Name] = true
		}
		require.True(t, seen[d.Kind])
	}
}
