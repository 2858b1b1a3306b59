package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
)

// examples are manifests that users of KubeVirt know, if they are here.
const examples = "../../../shared/conformance/examples/*.yaml"

// The examples that name an instance type say their memory too. KubeVirt refuses them where
// the instance type exists, and so does Podvisor, for that field alone.
func TestExamplesThatNameAnInstanceTypeAreJudgedAsInKubeVirt(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(examples)
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("the conformance data are not here")
	}
	var known []vmi.Object
	texts := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		texts[filepath.Base(f)] = string(text)
		sizes, err := manifest.Sizes(text)
		require.NoError(t, err)
		known = append(known, sizes...)
	}
	accepted, conflicts, without := 0, 0, 0
	for name, text := range texts {
		if !strings.Contains(text, "instancetype") {
			continue
		}
		// Alone, as before its instance type exists.
		all, err := manifest.Check([]byte(text), kinds.Cluster{})
		require.NoError(t, err, name)
		for _, o := range all {
			require.Empty(t, o.Faults, name)
			accepted++
		}
		all, err = manifest.Check([]byte(text), kinds.Cluster{}, known...)
		require.NoError(t, err, name)
		for _, o := range all {
			if len(o.Faults) > 0 {
				require.Len(t, o.Faults, 1, name)
				require.Equal(t, "spec.template.spec.domain.memory.guest", o.Faults[0].Field, name)
				conflicts++
			}
		}
		all, err = manifest.Check([]byte(strings.ReplaceAll(text, "        memory:\n          guest: 128Mi\n", "")), kinds.Cluster{}, known...)
		require.NoError(t, err, name)
		for _, o := range all {
			require.Empty(t, o.Faults, name)
			if v, ok := o.Complete.(*vmi.VirtualMachine); ok && v.Spec.Instancetype == nil {
				without++
			}
		}
	}
	t.Logf("%d objects are accepted alone; %d conflict with their instance type; %d of these expand without their own memory", accepted, conflicts, without)
	require.Positive(t, accepted)
	require.Positive(t, conflicts)
}
