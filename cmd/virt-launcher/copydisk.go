package main

import (
	"flag"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/internal/storage/image"
)

func copyDisk(args []string) error {
	var f flag.FlagSet
	path := f.String("path", "", "the absolute `path` of the disk image; default: the one file in /disk")
	to := f.String("to", "", "the `folder` that the image is copied to, into its folder disk")
	if err := program.ParseFlags(&f, args); err != nil {
		return err
	}
	if *to == "" {
		return command.Fault("copy-disk needs --to")
	}
	return image.Copy("/", *path, *to)
}
