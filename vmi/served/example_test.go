package served_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
)

func Example() {
	manifest := `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: hello}
spec:
  domain:
    memory: {guest: 512Mi}
    devices:
      interfaces:
      - {name: default, slirp: {}}
  networks:
  - {name: default, pod: {}}
`
	var object map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range served.Unserved(vmi.VirtualMachineInstances.Kind).In(object) {
		fmt.Println(f)
	}
	// Output: spec.domain.devices.interfaces[0].slirp: not served: the binding is discontinued: use masquerade or passtBinding
}

func ExampleFields_Prune() {
	object := map[string]any{"spec": map[string]any{"later": 1, "now": 2, "part": map[string]any{"later": 3}}}
	served.Fields{{Path: "spec.later"}, {Path: "spec.part.later"}}.Prune(object)
	fmt.Println(object)
	// Output: map[spec:map[now:2]]
}
