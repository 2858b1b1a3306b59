package console_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/podvisor/podvisor/internal/launcher/console"
)

func ExampleLog() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "virt-serial0-log")
	log, err := console.OpenLog(path, os.Stdout)
	if err != nil {
		fmt.Println(err)
		return
	}
	qemu, _ := os.OpenFile(path, os.O_WRONLY, 0)
	fmt.Fprintln(qemu, "hello login:")
	qemu.Close()
	<-log.Close()
	// Output: hello login:
}
