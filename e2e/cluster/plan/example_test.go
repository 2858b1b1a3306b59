package plan_test

import (
	"fmt"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

func ExampleNew() {
	p := plan.New(plan.Config{Name: "dev", Nodes: 2, State: "/tmp/dev"})
	for _, m := range append([]plan.Host{p.ControlPlane}, p.Nodes...) {
		fmt.Print(m.Name, " ", m.Address.Addr(), ":")
		for _, program := range m.Programs {
			fmt.Print(" ", program.Name)
		}
		fmt.Println()
	}
	// Output:
	// cp 10.200.0.1: etcd kube-apiserver bootstrap kube-controller-manager kube-scheduler coredns csi snapshot-kinds
	// n1 10.200.0.11: containerd pause-image multus kubelet kube-proxy csi policy
	// n2 10.200.0.12: containerd pause-image multus kubelet kube-proxy csi policy
}
