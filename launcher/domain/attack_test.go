package domain

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/storage"
)

// backingXML is the element backingStore. libvirtxml reads an empty one as none.
type backingXML struct {
	Format struct {
		Type string `xml:"type,attr"`
	} `xml:"format"`
	Source *struct{}   `xml:"source"`
	Next   *backingXML `xml:"backingStore"`
}

// Without a format QEMU detects one in what a guest wrote, and without an end of the
// backing files libvirt looks for one there.
func TestAttackEveryDiskHasAFormatAndAnEndOfItsBackingFiles(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob("testdata/*.xml")
	require.NoError(t, err)
	formats := []string{string(storage.Raw), string(storage.QCOW2)}
	disks, overlays := 0, 0
	for _, path := range all {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var d struct {
			Disks []struct {
				Driver struct {
					Type string `xml:"type,attr"`
				} `xml:"driver"`
				Source  *struct{}   `xml:"source"`
				Backing *backingXML `xml:"backingStore"`
			} `xml:"devices>disk"`
		}
		require.NoError(t, xml.Unmarshal(text, &d))
		for _, disk := range d.Disks {
			if disk.Source == nil {
				continue // an empty drive
			}
			disks++
			require.Contains(t, formats, disk.Driver.Type, path)
			require.NotNil(t, disk.Backing, "%s: the chain has no end", path)
			for b := disk.Backing; b.Source != nil; b = b.Next {
				overlays++
				require.Contains(t, formats, b.Format.Type, path)
				require.NotNil(t, b.Next, "%s: the chain has no end", path)
			}
		}
	}
	require.NotZero(t, disks)
	require.NotZero(t, overlays)
}
