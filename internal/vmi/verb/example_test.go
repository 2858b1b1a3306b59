package verb_test

import (
	"fmt"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	start, _ := verb.Find(verb.VMs, "start")
	plan, err := start.Decide(verb.Observed{VM: vmitest.NewVM(vmi.RunHalted), Body: []byte("dryRun: [All]")})
	fmt.Println(plan.Patches[0].Operations[1], plan.Patches[0].DryRun, err)

	_, err = start.Decide(verb.Observed{Name: "web"})
	fmt.Println(err)
	// Output:
	// {replace /spec/runStrategy Always} [All] <nil>
	// virtualmachine.kubevirt.io "web" not found
}
