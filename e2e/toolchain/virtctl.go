package toolchain

import (
	"context"
	"fmt"
	"path/filepath"
)

// Virtctl makes the virtctl of KubeVirt if it is not in the cache, and returns the path of the
// program. Its source is that of the module kubevirt.io/kubevirt, unmodified; the version
// is set by the linker, as KubeVirt's own build does. No cluster needs it, so [Build] does not
// make it.
func Virtctl(ctx context.Context, c Config) (string, error) { return c.program(ctx, virtctl) }

// program makes the one program of a part if it is not in the cache, and returns its path.
func (c Config) program(ctx context.Context, of func(source string) (part, error)) (string, error) {
	c, err := c.complete()
	if err != nil {
		return "", err
	}
	source, err := Source()
	if err != nil {
		return "", err
	}
	p, err := of(source)
	if err != nil {
		return "", err
	}
	dir, err := c.build(ctx, p)
	if err != nil {
		return "", fmt.Errorf("build %s %s: %w", p.name, p.version, err)
	}
	return filepath.Join(dir, p.programs[0].output), nil
}

func virtctl(source string) (part, error) {
	dir := filepath.Join(source, "virtctl")
	version, err := required(dir, "kubevirt.io/kubevirt")
	if err != nil {
		return part{}, err
	}
	const at = "-X kubevirt.io/client-go/version."
	return part{name: "virtctl", version: version, dir: dir, programs: []program{{
		output: "virtctl", pkg: "kubevirt.io/kubevirt/cmd/virtctl",
		ldflags: at + "gitVersion=" + version + " " + at + "gitTreeState=clean",
	}}}, nil
}
