package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/applyconfiguration"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// connect makes a client. In a cluster, its configuration is that of
// rest.InClusterConfig, elsewhere that of clientcmd; here it is that of a server
// in memory that holds the objects.
func connect(objects ...vmi.Object) *client.Client {
	c, err := client.New(fake.New(objects...).Config())
	if err != nil {
		panic(err)
	}
	return c
}

func Example() {
	c := connect(vmitest.New(vmitest.WithName("web")), vmitest.New(vmitest.WithName("db")))

	all, err := c.VirtualMachineInstances(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range all.Items {
		fmt.Println(v.Namespace, v.Name)
	}
	// Output:
	// default db
	// default web
}

func Example_create() {
	vmis := connect().VirtualMachineInstances("default")

	v, err := vmis.Create(context.Background(), &vmi.VirtualMachineInstance{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"},
		Spec: vmi.VirtualMachineInstanceSpec{
			Domain:  vmi.DomainSpec{CPU: &vmi.CPU{Cores: 2}},
			Volumes: []vmi.Volume{{Name: "root", VolumeSource: vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "example/web:1"}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(v.Name), v.Spec.Volumes[0].ContainerDisk.Image)
	// Output: 9 example/web:1
}

func Example_watch() {
	vmis := connect(vmitest.New()).VirtualMachineInstances("default")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// From the version of a list on, nothing is missed. A watch ends now and
	// then; package informer goes on by itself.
	all, err := vmis.List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := vmis.Watch(ctx, metav1.ListOptions{ResourceVersion: all.ResourceVersion})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Stop()
	if err := vmis.Delete(ctx, "testvmi", metav1.DeleteOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	e := <-w.ResultChan()
	if v, ok := e.Object.(*vmi.VirtualMachineInstance); ok {
		fmt.Println(e.Type, v.Name)
	}
	// Output: DELETED testvmi
}

func Example_patch() {
	vms := connect(vmitest.NewVM(vmi.RunHalted)).VirtualMachines("default")

	m, err := vms.Patch(context.Background(), "testvmi", types.MergePatchType,
		[]byte(`{"spec": {"runStrategy": "Always"}}`), metav1.PatchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Spec.Strategy())
	// Output: Always
}

func Example_apply() {
	vms := connect(vmitest.NewVM(vmi.RunHalted, vmitest.WithClaim("root", "web"))).VirtualMachines("default")

	// One more volume. Those of others stay, and so does all else.
	desired := applyconfiguration.VirtualMachine("testvmi", "default").
		WithSpec(applyconfiguration.VirtualMachineSpec().
			WithTemplate(applyconfiguration.VirtualMachineInstanceTemplateSpec().
				WithSpec(applyconfiguration.VirtualMachineInstanceSpec().
					WithVolumes(applyconfiguration.Volume().WithName("logs").WithEmptyDisk(applyconfiguration.EmptyDisk())))))
	m, err := vms.Apply(context.Background(), desired, metav1.ApplyOptions{FieldManager: "log-operator"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range m.Spec.Template.Spec.Volumes {
		fmt.Println(v.Name)
	}
	// Output:
	// root
	// logs
}

func Example_scale() {
	sets := connect(vmitest.NewReplicaSet(2, vmitest.WithName("web"))).VirtualMachineInstanceReplicaSets("default")
	ctx := context.Background()

	s, err := sets.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Spec.Replicas++
	if s, err = sets.UpdateScale(ctx, "web", s, metav1.UpdateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Spec.Replicas)
	// Output: 3
}

func ExampleWaitForPhase() {
	vmis := connect(vmitest.New(vmitest.WithPhase(vmi.PhaseRunning))).VirtualMachineInstances("default")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	v, err := client.WaitForPhase(ctx, vmis, "testvmi", vmi.PhaseRunning)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Name, v.Status.Phase)
	// Output: testvmi Running
}

func ExampleWaitFor() {
	vmis := connect(vmitest.New(vmitest.WithPhase(vmi.PhaseRunning))).VirtualMachineInstances("default")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	// The function is not asked while there is no VMI of this name.
	v, err := client.WaitFor(ctx, vmis, "testvmi", func(v *vmi.VirtualMachineInstance) (bool, error) {
		return v.Status.Phase == vmi.PhaseRunning, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Name)

	if err := vmis.Delete(ctx, "testvmi", metav1.DeleteOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.WaitForDeletion(ctx, vmis, "testvmi"))
	// Output:
	// testvmi
	// <nil>
}

// A VMI that the Go type cannot hold does not keep a program from the others.
func Example_unreadable() {
	s := fake.New(vmitest.New())
	broken := `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "broken", "namespace": "default"},
		"spec": {"domain": {"cpu": {"cores": -1}}}}`
	r := httptest.NewRequest(http.MethodPost, "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances", strings.NewReader(broken))
	s.ServeHTTP(httptest.NewRecorder(), r) // as an API server did with another schema
	c, err := client.New(s.Config())
	if err != nil {
		fmt.Println(err)
		return
	}

	all, err := c.VirtualMachineInstances("default").List(context.Background(), metav1.ListOptions{})
	if err != nil && !errors.Is(err, vmi.ErrUnreadable) {
		fmt.Println(err)
		return
	}
	for _, v := range all.Items {
		if why := (*vmi.UnreadableError)(nil); errors.As(vmi.Unreadable(&v), &why) {
			fmt.Printf("%s: %s\n", v.Name, why.Faults())
			continue
		}
		fmt.Println(v.Name, "can be used")
	}
	// Output:
	// broken: spec.domain.cpu.cores: -1: must be a whole number from 0 to 4294967295
	// testvmi can be used
}

func Example_start() {
	vms := connect(vmitest.NewVM(vmi.RunHalted, vmitest.WithName("web"))).VirtualMachines("default")
	ctx := context.Background()

	fmt.Println(vms.Start(ctx, "web", vmi.StartOptions{}))
	m, err := vms.Get(ctx, "web", metav1.GetOptions{})
	fmt.Println(m.Spec.Strategy(), err)

	err = vms.Start(ctx, "web", vmi.StartOptions{})
	fmt.Println(apierrors.IsConflict(err))
	// Output:
	// <nil>
	// Always <nil>
	// true
}

// The guest of the fake sends back what it gets.
func Example_console() {
	vmis := connect(vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.PhaseRunning))).VirtualMachineInstances("default")

	console, err := vmis.Console(context.Background(), "web")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer console.Close()
	_ = console.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(console, "uptime\n"); err != nil {
		fmt.Println(err)
		return
	}
	line, err := bufio.NewReader(console).ReadString('\n')
	fmt.Printf("%q %v\n", line, err)
	// Output: "uptime\n" <nil>
}

// A port of a guest serves any client of net/http.
func ExampleDial() {
	vms := connect().VirtualMachines("default")

	web := http.Client{Transport: &http.Transport{DialContext: vms.PortForward("web")}}
	page, err := web.Get("http://web/")
	if err == nil {
		defer page.Body.Close()
	}
	fmt.Println(apierrors.IsNotFound(err))
	// Output: true
}
