package volume

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

func TestADiskGrowsWithItsClaimAsFarAsThereIsSpace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		info            *vmi.PersistentVolumeClaimInfo
		size, allocated int64
		free            int64
		readOnly        bool
		want            int64
	}{
		"a claim that grew":                    {sized("2Gi", "2Gi"), 967 << 20, 0, 10 << 30, false, 1935 << 20},
		"an image that is smaller":             {sized("1Gi", "1Gi"), 8 << 20, 8 << 20, 10 << 30, false, 967 << 20},
		"a claim of the same size":             {sized("1Gi", "1Gi"), 967 << 20, 0, 10 << 30, false, 967 << 20},
		"a claim that is a little smaller":     {sized("1Gi", "1Gi"), 1000 << 20, 0, 10 << 30, false, 1000 << 20},
		"a claim that is not known":            {nil, 8 << 20, 0, 10 << 30, false, 8 << 20},
		"a file system that has not grown yet": {sized("2Gi", "2Gi"), 967 << 20, 900 << 20, 100 << 20, false, 999 << 20},
		"a file system that is full":           {sized("2Gi", "2Gi"), 967 << 20, 500 << 20, 0, false, 967 << 20},
		"a claim that is only read":            {sized("2Gi", "2Gi"), 967 << 20, 0, 10 << 30, true, 967 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := inClaims(tt.info)
			v.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = tt.readOnly
			got, err := Resolve(v, Node{Paths: map[string]storage.Facts{
				testDir: {Kind: storage.Directory, FreeBytes: tt.free}, testFile: {Kind: storage.File, SizeBytes: tt.size, AllocatedBytes: tt.allocated},
			}})
			require.NoError(t, err)
			require.Equal(t, tt.want, got[0].SizeBytes)
			if tt.want > tt.size {
				require.Equal(t, storage.Grown{}, got[0].Source)
			} else {
				require.Nil(t, got[0].Source)
			}
		})
	}
}
