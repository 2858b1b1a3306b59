package toolchain

import (
	"context"
	"path/filepath"
)

// Helm makes Helm if it is not in the cache, and returns the path of the program. Its source is
// that of the module helm.sh/helm, unmodified. No cluster needs it, so [Build] does not make it.
func Helm(ctx context.Context, c Config) (string, error) { return c.program(ctx, helm) }

func helm(source string) (part, error) {
	dir := filepath.Join(source, "helm")
	version, err := required(dir, "helm.sh/helm/v4")
	if err != nil {
		return part{}, err
	}
	return part{name: "helm", version: version, dir: dir, programs: []program{{
		output: "helm", pkg: "helm.sh/helm/v4/cmd/helm", ldflags: "-X helm.sh/helm/v4/internal/version.version=" + version,
	}}}, nil
}
