package manifest_test

import (
	"fmt"

	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
)

func Example() {
	all, err := manifest.Check([]byte(`
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: hello}
spec:
  domain:
    memory: {guest: 512Mi}
    devices: {clientPassthrough: {}}
`), kinds.Cluster{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range all {
		for _, f := range o.Faults {
			fmt.Println(o, f)
		}
	}
	// Output: VirtualMachineInstance/hello spec.domain.devices.clientPassthrough: FieldValueInvalid: KubeVirt has this field and Podvisor does not: few VMs need it; it enters when it is built
}
