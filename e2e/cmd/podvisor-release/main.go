// Command podvisor-release writes a release into a folder, and uploads its images. Run it
// by `make release` and `make push`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/podvisor/podvisor/e2e/release"
	"github.com/podvisor/podvisor/internal/command"
)

var program = command.Program{
	Name: "podvisor-release",
	Usage: `usage: podvisor-release [FLAG...] make DIR   write the release of a version into the folder
       podvisor-release [FLAG...] push DIR   upload the images of the release in the folder

docs/install.md says what is in the folder.`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	version := flags.String("version", "", "the version to make, as v1.2.3")
	registry := flags.String("registry", "", "where the images are, as registry.example/podvisor; default of push: where the release says")
	root := flags.String("root", "..", "folder of the repository")
	changed := flags.Bool("changed", false, "make a release of files that are in no commit")
	insecure := flags.Bool("insecure", false, "push to a registry without TLS")
	if err := program.Parse(&flags, args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return command.Fault("a command and a folder are needed")
	}
	dir := flags.Arg(1)
	switch flags.Arg(0) {
	case "make":
		c := release.Config{Version: *version, Registry: *registry, Root: *root, To: dir, Changed: *changed, Out: os.Stdout}
		if err := release.Make(ctx, c); err != nil {
			return err
		}
		abs, err := filepath.Abs(dir)
		fmt.Println(abs)
		return err
	case "push":
		return release.Push(ctx, release.Upload{From: dir, Registry: *registry, Insecure: *insecure, Out: os.Stdout})
	}
	return command.Fault("unknown command %q", flags.Arg(0))
}
