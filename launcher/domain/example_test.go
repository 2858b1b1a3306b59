package domain_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/vmi"
)

func ExampleBuild() {
	instance := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: "1"}}
	memory := resource.MustParse("512Mi")
	instance.Spec.Domain.Memory = &vmi.Memory{Guest: &memory}

	d, err := domain.Build(instance, domain.Host{KVM: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Type, d.Name, d.Memory.Value, d.Memory.Unit)
	// Output: kvm default_hello 536870912 b
}
