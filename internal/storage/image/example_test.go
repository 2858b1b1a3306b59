package image_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/podvisor/podvisor/internal/storage/image"
)

// The image of a container disk is found and inspected as a launcher does it. In a launcher
// Command runs a process of its own for that, which holds nothing but the image.
func ExampleInspector() {
	root, err := os.MkdirTemp("", "disk")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	file := filepath.Join(root, "disk", "fedora.img")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	found, err := image.Inspector{}.ContainerDisk(context.Background(), root, "")
	fmt.Println(filepath.Base(found.Path), found.Format, found.SizeBytes, err)

	// A second file makes it ambiguous.
	if err := os.WriteFile(file+".sha256", nil, 0o644); err != nil {
		fmt.Println(err)
		return
	}
	_, err = image.Inspector{}.ContainerDisk(context.Background(), root, "")
	fmt.Println(err)
	// Output:
	// fedora.img raw 1048576 <nil>
	// the folder /disk must hold exactly one file and holds "fedora.img", "fedora.img.sha256": invalid
}
