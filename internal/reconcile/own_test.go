package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestTheLatestOfCacheAndOwnWrite(t *testing.T) {
	at := func(version string, options ...vmitest.Option) *vmi.VirtualMachineInstance {
		v := vmitest.New(options...)
		v.ResourceVersion = version
		return v
	}
	deleted := func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = &metav1.Time{} }
	kept := func(v *vmi.VirtualMachineInstance) { v.Finalizers = []string{vmi.Finalizer} }
	another := func(v *vmi.VirtualMachineInstance) { v.UID = "another" }
	for name, tt := range map[string]struct {
		own, cached, want *vmi.VirtualMachineInstance
		left              int
	}{
		"the cache is behind":                            {at("7"), at("6"), at("7"), 1},
		"the cache has caught up":                        {at("7"), at("7"), at("7"), 0},
		"another process wrote after it":                 {at("7"), at("8"), at("8"), 0},
		"the object is gone":                             {at("7"), nil, nil, 0},
		"another object has taken its name":              {at("7"), at("5", another), at("5", another), 0},
		"the write removed the last finalizer":           {at("7", deleted), at("7", deleted, kept), at("7", deleted), 1},
		"the object is deleted and has a finalizer left": {at("7", deleted, kept), at("8", deleted, kept), at("8", deleted, kept), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var w Own[*vmi.VirtualMachineInstance]
			w.Wrote(tt.own)
			require.Equal(t, tt.want, w.Latest("default/testvmi", tt.cached))
			require.Equal(t, tt.left, w.Len())
		})
	}
}
