package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/podvisor/podvisor/handler/host"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// The labels of a node whose QEMU emulates two models of processors, of which one is
// obsolete where nothing is configured.
func ExampleLabels_Of() {
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "processors.json")
	if err := os.WriteFile(file, []byte(`{"emulated": {"models": ["Nehalem", "qemu64"]}}`), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(fake.New().Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	settings, err := live.New(live.Config{KubeVirts: c.KubeVirts("")})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	labels, err := host.Labels{Processors: file, PodResources: filepath.Join(dir, "kubelet.sock"), Emulate: true, Settings: settings}.Of(ctx)
	fmt.Println(labels() == nil, err) // the configuration is not known yet
	go func() { _ = settings.Run(ctx) }()
	settings.Wait(ctx)
	var keys []string
	for k := range labels() {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Println(k)
	}
	// Output:
	// true <nil>
	// cpu-model-migration.node.kubevirt.io/Nehalem
	// cpu-model.node.kubevirt.io/Nehalem
}
