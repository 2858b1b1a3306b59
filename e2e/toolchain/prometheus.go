package toolchain

import (
	"context"
	"path/filepath"
)

// Prometheus makes the program prometheus if it is not in the cache, and returns its path. Its
// source is that of the module, unmodified. It finds targets in Kubernetes only, and has no pages. No
// cluster needs it, so [Build] does not make it.
func Prometheus(ctx context.Context, c Config) (string, error) { return c.program(ctx, prometheus) }

func prometheus(source string) (part, error) {
	const module = "github.com/prometheus/prometheus"
	dir := filepath.Join(source, "prometheus")
	version, err := required(dir, module)
	if err != nil {
		return part{}, err
	}
	return part{name: "prometheus", version: version, dir: dir, programs: []program{{
		output: "prometheus", pkg: module + "/cmd/prometheus", tags: "remove_all_sd enable_kubernetes_sd",
	}}}, nil
}
