package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestTheCommandPrintsTheManifestOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/root-disks.md")
	require.NoError(t, err)
	line, _, found := strings.Cut(string(page[strings.Index(string(page), "pack-disk claim"):]), " | kubectl apply")
	require.True(t, found)
	status, out, notes := packed(strings.Fields(line)[1:]...)
	require.Zero(t, status, notes)
	require.Contains(t, string(page), "```yaml\n"+out+"```\n")
}

func TestTheClaimAndTheJobAreWhatIsAskedFor(t *testing.T) {
	status, out, notes := packed("claim", "-claim", "db", "-image", "example.com/disks/db@sha256:0123", "-file", "disk.raw", "-size", "20Gi", "-class", "fast", "-launcher", "example.com/podvisor/virt-launcher:1")
	require.Zero(t, status, notes)
	first, second, found := strings.Cut(out, "---\n")
	require.True(t, found)
	var c corev1.PersistentVolumeClaim
	require.NoError(t, yaml.UnmarshalStrict([]byte(first), &c))
	require.Equal(t, "db", c.Name)
	require.Equal(t, "fast", *c.Spec.StorageClassName)
	require.Equal(t, "20Gi", c.Spec.Resources.Requests.Storage().String())
	var j batchv1.Job
	require.NoError(t, yaml.UnmarshalStrict([]byte(second), &j))
	require.Equal(t, "db-from-image", j.Name)
	pod := j.Spec.Template.Spec
	require.Equal(t, "example.com/podvisor/virt-launcher:1", pod.Containers[0].Image)
	require.Equal(t, []string{"/usr/bin/qemu-img", "convert", "-f", "raw", "-O", "raw", "-t", "writeback", "/image/disk/disk.raw", "/claim/disk.img"}, pod.Containers[0].Command)
	require.Equal(t, "example.com/disks/db@sha256:0123", pod.Volumes[0].Image.Reference)
	require.Equal(t, "db", pod.Volumes[1].PersistentVolumeClaim.ClaimName)
}

func TestArgumentsOfAClaimThatAreWrongAreNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no name":                   {[]string{"-image", "a:1"}, "pack-disk claim: -claim is missing"},
		"no image":                  {[]string{"-claim", "a"}, "-image is missing"},
		"a name with capitals":      {[]string{"-claim", "A", "-image", "a:1"}, `-claim "A" is no name of a claim`},
		"a name that is too long":   {[]string{"-claim", strings.Repeat("a", 53), "-image", "a:1"}, "at most 52 characters"},
		"an image with a new line":  {[]string{"-claim", "a", "-image", "a:1\nb: c"}, "is no name of an image"},
		"an image with a quote":     {[]string{"-claim", "a", "-image", `a"`}, "is no name of an image"},
		"a launcher with a space":   {[]string{"-claim", "a", "-image", "a:1", "-launcher", "a b"}, `-launcher "a b"`},
		"a path instead of a file":  {[]string{"-claim", "a", "-image", "a:1", "-file", "/disk/a"}, `-file "/disk/a" is no name of a file in the folder /disk`},
		"a size that is none":       {[]string{"-claim", "a", "-image", "a:1", "-size", "big"}, `-size "big" is no size`},
		"a size of nothing":         {[]string{"-claim", "a", "-image", "a:1", "-size", "0"}, `-size "0" is no size`},
		"a class that is none":      {[]string{"-claim", "a", "-image", "a:1", "-class", "a b"}, `-class "a b"`},
		"an option that is unknown": {[]string{"-x"}, "-x"},
		"an argument":               {[]string{"-claim", "a", "-image", "a:1", "disk.qcow2"}, `"disk.qcow2" is no option`},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, notes := packed(append([]string{"claim"}, tt.args...)...)
			require.Equal(t, 2, status)
			require.Contains(t, notes, tt.says)
			require.Empty(t, out)
		})
	}
	status, _, _ := packed("claim", "-claim", strings.Repeat("a", 52), "-image", "a:1")
	require.Zero(t, status)
	status, out, _ := packed("claim", "--help")
	require.Zero(t, status)
	require.Contains(t, out, claimUsage)
}

func TestAllFaultsOfAClaimAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	err := claim{Name: "A_b", Size: "-1Gi", File: "../x", Launcher: "l"}.check()
	for _, want := range []string{`-claim "A_b"`, "-image is missing", `-file "../x"`, `-size "-1Gi"`} {
		require.ErrorContains(t, err, want)
	}
}
