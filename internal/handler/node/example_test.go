package node_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/internal/handler/node"
	"github.com/podvisor/podvisor/vmi"
)

func Example() {
	cluster := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	h := node.New(node.Config{
		Nodes:       cluster.CoreV1().Nodes(),
		Name:        "n1",
		Schedulable: func() bool { return true },
	})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := h.Run(ctx); err != nil {
		fmt.Println(err)
	}
	n, _ := cluster.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
	fmt.Println("after an orderly end:", n.Labels[vmi.SchedulableLabel])
	// Output:
	// after an orderly end: false
}
