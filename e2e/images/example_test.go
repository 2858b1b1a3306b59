package images_test

import (
	"fmt"

	"github.com/podvisor/podvisor/e2e/images"
)

// Pods name the images as the nodes know them, which no registry does.
func ExampleReference() {
	fmt.Println(images.Reference("virt-launcher"))
	// Output: localhost/podvisor/virt-launcher:dev
}
