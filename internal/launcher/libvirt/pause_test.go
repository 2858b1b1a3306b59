package libvirt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheErrorsOfDisksAreReadFromQEMU(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		want   []DiskError
	}{
		"none": {`{"return":[{"io-status":"ok","device":"","qdev":"/machine/peripheral/ua-root/virtio-backend"}]}`, nil},
		"a virtio disk without space": {`{"return":[{"io-status":"nospace","device":"","qdev":"/machine/peripheral/ua-data/virtio-backend"}],"id":"libvirt-20"}`,
			[]DiskError{{"ua-data", true}}},
		"a SCSI disk and one on SATA": {`{"return":[{"io-status":"failed","qdev":"ua-a"},{"qdev":"ua-cd"},{"io-status":"failed","qdev":"/machine/peripheral/ua-b"}]}`,
			[]DiskError{{"ua-a", false}, {"ua-b", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := diskErrors(tt.answer)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	_, err := diskErrors("{")
	require.ErrorContains(t, err, "read the answer to query-block")
}
