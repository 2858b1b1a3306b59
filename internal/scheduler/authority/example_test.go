package authority_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/podvisor/podvisor/internal/scheduler/authority"
)

func Example() {
	// In a cluster: the clients of an account that nothing else uses.
	kube := fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-certificates"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-controller-certificates"}})
	a, err := authority.New(authority.Config{Kube: kube, Metadata: metadatafake.NewSimpleMetadataClient(runtime.NewScheme()), Namespace: "kubevirt"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			s, err := kube.CoreV1().Secrets("kubevirt").Get(ctx, "virt-controller-certificates", metav1.GetOptions{})
			if err == nil && len(s.Data) > 0 {
				fmt.Println("certificate:", len(s.Data["tls.crt"]) > 0, "key of the authority:", len(s.Data["ca.key"]) > 0)
				return
			}
		}
	}()
	_ = a.Run(ctx)
	// Output: certificate: true key of the authority: false
}
