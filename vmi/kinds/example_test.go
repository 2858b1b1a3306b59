package kinds_test

import (
	"fmt"

	"github.com/podvisor/podvisor/vmi/kinds"
)

func Example() {
	for _, k := range kinds.All() {
		if k.Served() {
			fmt.Println(k.Resource().GroupResource())
		}
	}
	// Output:
	// kubevirts.kubevirt.io
	// virtualmachinepools.pool.kubevirt.io
	// virtualmachines.kubevirt.io
	// virtualmachineinstancereplicasets.kubevirt.io
	// virtualmachineinstances.kubevirt.io
	// virtualmachineinstancemigrations.kubevirt.io
	// migrationpolicies.migrations.kubevirt.io
	// virtualmachineinstancetypes.instancetype.kubevirt.io
	// virtualmachineclusterinstancetypes.instancetype.kubevirt.io
	// virtualmachinepreferences.instancetype.kubevirt.io
	// virtualmachineclusterpreferences.instancetype.kubevirt.io
}
