package quantity_test

import (
	"encoding/json"
	"fmt"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

func Example() {
	data := []byte(`{"spec":{"domain":{"memory":{"guest":"1e999999999"}}}}`)
	var v vmi.VirtualMachineInstance
	if l := quantity.FaultsIn(&v, data); len(l) > 0 {
		fmt.Println(l[0])
		return
	}
	if err := json.Unmarshal(data, &v); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(quantity.Faults(nil, &v).ToAggregate())
	// Output:
	// spec.domain.memory.guest: Invalid value: "1e999999999" must be a quantity of at most 32 characters with an exponent from -19 to 19, such as 2, 500m or 512Mi
}
