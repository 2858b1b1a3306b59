package migrationpolicy_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
)

func Example() {
	c, err := client.New(fake.New().Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	policies := client.Of(c, migrationpolicy.MigrationPolicies, "")
	p := &migrationpolicy.MigrationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
	p.Spec.Selectors = &migrationpolicy.Selectors{NamespaceSelector: map[string]string{"tier": "test"}}
	if _, err := policies.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	all, err := policies.List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range all.Items {
		fmt.Println(p.Name, p.Spec.Selectors.NamespaceSelector)
	}
	// Output: slow map[tier:test]
}
