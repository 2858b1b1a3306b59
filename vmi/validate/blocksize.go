package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// The smallest and the largest block, in bytes.
const (
	minBlock = 512
	maxBlock = 2 << 20
)

// blockSize checks the block sizes that the guest sees.
func blockSize(at *field.Path, b *vmi.BlockSize, bus vmi.DiskBus) field.ErrorList {
	if on(b.MatchVolume) {
		return field.ErrorList{field.Invalid(at, "custom and matchVolume", "must be one of them: leave the other out")}
	}
	c, custom := b.Custom, at.Child("custom")
	if c.Logical > c.Physical {
		// Neither is known to be right.
		return field.ErrorList{field.Invalid(custom.Child("logical"), c.Logical, fmt.Sprintf("must not be more than physical, %d", c.Physical))}
	}
	l := append(blockPower(custom.Child("logical"), c.Logical), blockPower(custom.Child("physical"), c.Physical)...)
	if bus == vmi.DiskBusSATA && c.Logical != minBlock {
		l = append(l, field.Invalid(custom.Child("logical"), c.Logical, "must be 512 on the bus sata: use virtio or scsi for larger blocks"))
	}
	if g := c.DiscardGranularity; g != nil && c.Logical != 0 && *g%c.Logical != 0 {
		l = append(l, field.Invalid(custom.Child("discardGranularity"), *g, fmt.Sprintf("must be a multiple of logical, %d", c.Logical)))
	}
	return l
}

func blockPower(at *field.Path, n uint) field.ErrorList {
	if n < minBlock || n > maxBlock || n&(n-1) != 0 {
		return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("must be a power of 2 from %d to %d", minBlock, maxBlock))}
	}
	return nil
}
