package admission

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi/vmitest"
)

// BenchmarkReview is what the webhooks take for one creation of a usual VMI, without the
// connection.
func BenchmarkReview(b *testing.B) {
	v := vmitest.New(vmitest.WithName("vm"), vmitest.WithMemory("64Mi"), vmitest.WithMasquerade("default"), vmitest.WithContainerDisk("root", "podvisor/demo-guest"), vmitest.WithCloudInit("data", "#cloud-config\n"))
	v.APIVersion, v.Kind, v.Namespace = "kubevirt.io/v1", "VirtualMachineInstance", "ns"
	object, err := json.Marshal(v)
	require.NoError(b, err)
	done := patched(b, string(object), ask(b, DefaultsPath, string(object), ""))
	require.True(b, ask(b, ValidationPath, done, "").Allowed)
	for name, review := range map[string]struct {
		path, object string
		handler      http.Handler
	}{
		"defaults":   {DefaultsPath, string(object), Webhooks{}},
		"validation": {ValidationPath, done, Webhooks{}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				askOf(b, review.handler, review.path, review.object, "")
			}
		})
	}
}
