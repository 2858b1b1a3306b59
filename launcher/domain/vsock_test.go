package domain

import (
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"
)

func TestTheNumberOfAGuestIsWhatLibvirtTook(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		vsock string
		want  uint32
	}{
		"a domain that runs":     {`<vsock model="virtio"><cid auto="yes" address="7"/></vsock>`, 7},
		"the highest there is":   {`<vsock model="virtio"><cid auto="yes" address="4294967294"/></vsock>`, 4294967294},
		"a domain that does not": {`<vsock model="virtio"><cid auto="yes"/></vsock>`, 0},
		"more than a number has": {`<vsock model="virtio"><cid auto="yes" address="4294967296"/></vsock>`, 0},
		"no number":              {`<vsock model="virtio"><cid auto="yes" address="-1"/></vsock>`, 0},
		"no element":             {`<vsock model="virtio"/>`, 0},
		"no device":              {``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d libvirtxml.Domain
			require.NoError(t, d.Unmarshal(`<domain type="kvm"><devices>`+tt.vsock+`</devices></domain>`))
			require.Equal(t, tt.want, VSOCKCID(&d))
		})
	}
	require.Zero(t, VSOCKCID(&libvirtxml.Domain{}))
}
