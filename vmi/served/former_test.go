package served_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/served"
)

// A field of before v1 that the types have would be refused though it is served.
func TestNoTypeHasAFieldOfBeforeV1(t *testing.T) {
	t.Parallel()
	found := 0
	for _, k := range kinds.All() {
		for _, f := range served.Formers(k.Kind) {
			found++
			require.NotEmpty(t, f.Write, f.Path)
			require.Contains(t, []string{"object", "array", "string", "integer"}, f.Type, f.Path)
			at := reflect.TypeOf(k.New()).Elem()
			steps := strings.Split(f.Path, ".")
			for i, step := range steps {
				next, ok := fieldOf(at, strings.TrimSuffix(step, "[]"))
				if !ok {
					below := strings.HasPrefix(f.Path, "spec.domain.") || strings.HasPrefix(f.Path, "spec.volumes") || strings.HasPrefix(f.Path, "spec.networks")
					require.True(t, i == len(steps)-1 || k.Kind == "VirtualMachine" && below, "%s %s has no place", k.Kind, f.Path)
					break
				}
				require.NotEqual(t, len(steps)-1, i, "%s has the field %s", k.Kind, f.Path)
				at = next
			}
		}
	}
	require.NotZero(t, found)
}

// fieldOf is the type of the field with this JSON name, behind pointers and lists.
func fieldOf(at reflect.Type, name string) (reflect.Type, bool) {
	for i := range at.NumField() {
		f := at.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" && strings.Contains(options, "inline") {
			if found, ok := fieldOf(f.Type, name); ok {
				return found, true
			}
		}
		if tag == name {
			of := f.Type
			for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
				of = of.Elem()
			}
			return of, true
		}
	}
	return nil, false
}

func TestWhatIsWrittenInsteadOfWordsOfBeforeV1(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"kubevirt.io/v1alpha3": "write apiVersion: kubevirt.io/v1", "kubevirt.io/v1alpha1": "write apiVersion: kubevirt.io/v1",
		"kubevirt.io/v1": "", "kubevirt.io/v2": "", "example.com/v1alpha3": "", "v1alpha3": "", "": "",
	} {
		require.Equal(t, want, served.FormerVersion(version), version)
	}
	require.Equal(t, "VirtualMachine", served.FormerKind("OfflineVirtualMachine"))
	require.Empty(t, served.FormerKind("VirtualMachine"))
	var o map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"spec": {"domain": {}, "volumes": [{}, {"registryDisk": null}],
		"template": {"spec": {"volumes": [{"registryDisk": {}}]}}}}`), &o))
	var got []string
	for _, f := range served.FormersIn("VirtualMachine", o) {
		got = append(got, f.Path)
	}
	require.Equal(t, []string{"spec.domain", "spec.template.spec.volumes[0].registryDisk", "spec.volumes", "spec.volumes[1].registryDisk"}, got)
	require.Empty(t, served.FormersIn("Pod", o))
}
