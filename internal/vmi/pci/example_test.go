package pci_test

import (
	"fmt"

	"github.com/podvisor/podvisor/internal/vmi/pci"
)

func Example() {
	fmt.Println(pci.Port(pci.Interfaces, 0), pci.Port(pci.Disks, 0), pci.Of(pci.CardSlots(), 0))
	// Output:
	// 0000:01:00.0 0000:05:00.0 0000:00:0b.0
}
