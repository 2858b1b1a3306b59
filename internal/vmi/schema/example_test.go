package schema_test

import (
	"fmt"

	"github.com/podvisor/podvisor/internal/vmi/schema"
)

func Example() {
	object := map[string]any{"spec": map[string]any{
		"domain":   map[string]any{"devices": map[string]any{}},
		"networks": []any{map[string]any{"name": "default"}},
	}}
	for _, f := range schema.Faults("VirtualMachineInstance", object) {
		fmt.Println(f)
	}
	// Output:
	// spec.networks[0]: Invalid value: a network has exactly one source: pod or multus
}
