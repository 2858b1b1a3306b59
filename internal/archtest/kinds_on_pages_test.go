package archtest

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// What users write is on a page beside the generated one: a new kind of volume, of binding or
// of object that is on none fails here.
func TestTheDocsNameEachKindOfVolumeBindingAndObject(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	var pages []byte
	for _, f := range files {
		if filepath.Base(f) == "fields.md" {
			continue
		}
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		pages = append(pages, text...)
	}
	named := func(name string) bool { return regexp.MustCompile(`\b` + name + `\b`).Match(pages) }
	for _, k := range volume.Kinds() {
		require.True(t, named(k.Name), "no page of docs names the kind of volume %s", k.Name)
	}
	fields := reflect.TypeFor[vmi.InterfaceBinding]()
	for i := range fields.NumField() {
		var spec vmi.Interface
		of := reflect.ValueOf(&spec.InterfaceBinding).Elem().Field(i)
		of.Set(reflect.New(of.Type().Elem()))
		if slices.ContainsFunc(network.Bindings(), func(b network.Binding) bool { return b.Serves(spec) }) {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
			require.True(t, named(name), "no page of docs names the binding %s", name)
		}
	}
	for _, k := range kinds.All() {
		require.True(t, !k.Served() || named(k.Kind), "no page of docs names the kind %s", k.Kind)
	}
	require.False(t, named("nosuchkind"))
}
