package launcher

import "fmt"

// ResizeDisk makes a disk as large as its Device says.
const ResizeDisk OperationKind = "resize disk"

// resizeDisk is due when a disk is smaller than desired. A size that is not known differs
// from none, and no disk is to become smaller.
var resizeDisk = operationKind{
	name: ResizeDisk,
	due: changing(func(want, have Device) bool {
		return want.SizeBytes != 0 && have.SizeBytes != 0 && want.SizeBytes > have.SizeBytes
	}),
	text:   func(d Device) string { return fmt.Sprintf("resize %s to %d bytes", d.Name, d.SizeBytes) },
	reason: ReasonResizeFailed,
}
