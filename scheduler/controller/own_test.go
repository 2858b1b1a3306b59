package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestTheNewerOfCacheAndOwnWriteIsTheMachine(t *testing.T) {
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
	}{
		"the cache is behind":                      {at("7"), at("6"), at("7")},
		"the cache has caught up":                  {at("7"), at("7"), at("7")},
		"somebody wrote after it":                  {at("7"), at("8"), at("8")},
		"the machine is gone":                      {at("7"), nil, nil},
		"another has taken its name":               {at("7"), at("5", another), at("5", another)},
		"it went with the write, in that version":  {at("7", deleted), at("7", deleted, kept), at("7", deleted)},
		"it is deleted and somebody else keeps it": {at("7", deleted, kept), at("8", deleted, kept), at("8", deleted, kept)},
	} {
		t.Run(name, func(t *testing.T) {
			var w ownWrites
			w.remember(tt.own)
			require.Equal(t, tt.want, w.latest("default/testvmi", tt.cached))
		})
	}
}
