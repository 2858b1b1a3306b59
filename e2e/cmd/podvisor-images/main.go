// Command podvisor-images builds the project's container images on this host.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/internal/command"
)

var program = command.Program{
	Name: "podvisor-images",
	Usage: `usage: podvisor-images [FLAG...] build [NAME...]   make what is not up to date, print where it is
       podvisor-images [FLAG...] sizes [NAME...]   the same, and what takes the space in each
       podvisor-images [FLAG...] unpack NAME DIR   the same, and its files below a folder
       podvisor-images root NAME                   the same, and the folder with its files, which stays as it is
       podvisor-images lock                        take the newest packages of Debian, write images/lock.yaml

NAME is one of ` + strings.Join(slices.Concat(images.Names(), images.Extra()), ", ") + "; without one, all are meant but the last two.",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	var conf images.Config
	flags.StringVar(&conf.Version, "version", "", "what the programs say that they are, as v1.2.3; default: the commit")
	flags.StringVar(&conf.Tag, "tag", "", "the tag of the images' names; default: dev")
	flags.StringVar(&conf.Architecture, "arch", "amd64", "the architecture of the images: amd64 or arm64")
	if err := program.Parse(&flags, args); err != nil {
		return err
	}
	args = flags.Args()
	conf.Out = os.Stdout
	if !regexp.MustCompile(`^(v[0-9A-Za-z.+-]+)?$`).MatchString(conf.Version) {
		return command.Fault("-version %q must be like v1.2.3", conf.Version)
	}
	if !regexp.MustCompile(`^(\w[\w.-]{0,127})?$`).MatchString(conf.Tag) {
		return command.Fault("-tag %q must be a tag of an image, as v1.2.3", conf.Tag)
	}
	switch {
	case len(args) == 3 && args[0] == "unpack":
		conf.Names = args[1:2]
		built, err := images.Build(ctx, conf)
		if err != nil {
			return err
		}
		return images.Unpack(built[0], args[2])
	case len(args) == 2 && args[0] == "root":
		conf.Names, conf.Out = args[1:], os.Stderr
		dir, err := images.Root(ctx, conf)
		if err == nil {
			fmt.Println(dir)
		}
		return err
	case len(args) == 1 && args[0] == "lock":
		return images.Lock(ctx, conf)
	case len(args) == 0:
		return command.Fault("a command is missing")
	case args[0] == "unpack":
		return command.Fault("unpack needs the name of an image and a folder")
	case args[0] != "build" && args[0] != "sizes":
		return command.Fault("unknown command %q", args[0])
	}
	conf.Names = args[1:]
	built, err := images.Build(ctx, conf)
	if err != nil || args[0] == "build" {
		return err
	}
	for _, b := range built {
		text, err := images.Contents(b)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s\n", text)
	}
	return nil
}
