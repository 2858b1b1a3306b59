package apiserver

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// onNode1 is the configuration of a client with the token of the handler's pod on node
// n1 that the API server issues.
func onNode1(t *testing.T, cfg *rest.Config, namespace string) *rest.Config {
	t.Helper()
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	p, err := kube.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "handler-"},
		Spec:       corev1.PodSpec{NodeName: "n1", ServiceAccountName: "virt-handler", Containers: []corev1.Container{{Name: "c", Image: "example/c"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = kube.CoreV1().Pods(namespace).Delete(context.Background(), p.Name, atOnce) })
	r, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "virt-handler", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	out := rest.AnonymousClientConfig(cfg)
	out.BearerToken = r.Status.Token
	return out
}

// eventOf is an event of a VMI as the component writes it.
func eventOf(namespace, component, node string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "vm.", Namespace: namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Namespace: namespace, Name: "vm", UID: "u"},
		Type:           corev1.EventTypeNormal, Reason: "Started", Message: "m", Count: 1,
		Source: corev1.EventSource{Component: component, Host: node}, ReportingController: component, ReportingInstance: node,
	}
}

// forgeEvents tries to write events with the tokens of the components.
func forgeEvents(t *testing.T, cfg *rest.Config, namespace, tenant string) {
	t.Helper()
	of := func(p string) func(*corev1.Event) {
		return func(e *corev1.Event) {
			e.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: p, Namespace: tenant, Name: "x"}
		}
	}
	for _, tt := range []struct {
		name string
		cfg  *rest.Config
		as   *corev1.Event
		more map[string]func(*corev1.Event)
	}{
		{"virt-controller", withToken(t, cfg, namespace, "virt-controller"), eventOf(tenant, "virtualmachine-controller", ""), map[string]func(*corev1.Event){
			"from virt-handler": func(e *corev1.Event) { e.Source.Component, e.ReportingController = "virt-handler", "virt-handler" },
		}},
		{"virt-handler", onNode1(t, cfg, namespace), eventOf(tenant, "virt-handler", "n1"), map[string]func(*corev1.Event){
			"from another node":           func(e *corev1.Event) { e.Source.Host, e.ReportingInstance = "n2", "n2" },
			"from another node's process": func(e *corev1.Event) { e.ReportingInstance = "n2" },
			"from no node":                func(e *corev1.Event) { e.Source.Host, e.ReportingInstance = "", "" },
			"of a KubeVirt":               func(e *corev1.Event) { e.InvolvedObject.Kind = "KubeVirt" },
		}},
	} {
		kube, err := kubernetes.NewForConfig(tt.cfg)
		require.NoError(t, err)
		_, err = kube.CoreV1().Events(tenant).Create(t.Context(), tt.as, dryRun)
		require.NoError(t, err, tt.name)
		tt.more["of a pod"] = of("Pod")
		tt.more["of a Secret"] = of("Secret")
		tt.more["of a VMI of another group"] = func(e *corev1.Event) { e.InvolvedObject.APIVersion = "kubevirt.io.example.com/v1" }
		tt.more["from the kubelet"] = func(e *corev1.Event) { e.Source.Component, e.ReportingController = "kubelet", "kubelet" }
		tt.more["from the kubelet's controller"] = func(e *corev1.Event) { e.ReportingController = "kubelet" }
		tt.more["with another object beside it"] = func(e *corev1.Event) { e.Related = &corev1.ObjectReference{Kind: "Node", Name: "n1"} }
		for what, change := range tt.more {
			e := tt.as.DeepCopy()
			change(e)
			_, err := kube.CoreV1().Events(tenant).Create(t.Context(), e, dryRun)
			require.True(t, apierrors.IsForbidden(err), "%s: an event %s: %v", tt.name, what, err)
			require.ErrorContains(t, err, "may write events", "%s: an event %s", tt.name, what)
		}
	}
}

func TestAttackTheTokensOfTheComponentsForgeNoEvents(t *testing.T) {
	t.Parallel()
	forgeEvents(t, world.config, home, newSpace(t).name)
}

// attackable gives a VMI what changeVMIs needs: a label, and a second interface, which is
// absent.
func attackable(v *vmi.VirtualMachineInstance) {
	v.Labels = map[string]string{"mine": "a"}
	vmitest.WithMultus("second", "lan")(v)
	v.Spec.Domain.Devices.Interfaces[1].State = vmi.InterfaceAbsent
}

// changeVMIs tries to change a VMI with the token of virt-controller.
func changeVMIs(t *testing.T, cfg *rest.Config, namespace string, v *vmi.VirtualMachineInstance) {
	t.Helper()
	c, err := client.New(withToken(t, cfg, namespace, "virt-controller"))
	require.NoError(t, err)
	patch := func(data string) error {
		_, err := c.VirtualMachineInstances(v.Namespace).Patch(t.Context(), v.Name, types.MergePatchType, []byte(data), metav1.PatchOptions{})
		return err
	}
	change := func(data string) error {
		_, err := c.VirtualMachineInstances(v.Namespace).Patch(t.Context(), v.Name, types.JSONPatchType, []byte(data), metav1.PatchOptions{})
		return err
	}
	for what, data := range map[string]string{
		"a label":                           `{"metadata":{"labels":{"app":"x"}}}`,
		"a label that is there":             `{"metadata":{"labels":{"mine":null}}}`,
		"an annotation":                     `{"metadata":{"annotations":{"app":"x"}}}`,
		"another annotation":                `{"metadata":{"annotations":{"kubevirt.io/ignitiondata":"x"}}}`,
		"an owner":                          `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"x"}]}}`,
		"an owner of another group":         `{"metadata":{"ownerReferences":[` + strings.Replace(ownerOf("VirtualMachine", "x"), "kubevirt.io/", "kubevirt.io.example.com/", 1) + `]}}`,
		"an owner that does not control it": `{"metadata":{"ownerReferences":[{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","name":"x","uid":"x"}]}}`,
		"a finalizer of another":            `{"metadata":{"finalizers":["example.com/x","` + vmi.Finalizer + `"]}}`,
	} {
		err := patch(data)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
		require.ErrorContains(t, err, "virt-controller may change of ", what)
	}
	link := func(state string) string {
		return `[{"op":"add","path":"/spec/domain/devices/interfaces/0/state","value":"` + state + `"}]`
	}
	for what, data := range map[string]string{
		"the memory":              `[{"op":"replace","path":"/spec/domain/memory/guest","value":"1Gi"}]`,
		"a field that is left":    `[{"op":"add","path":"/spec/hostname","value":"x"}]`,
		"the volumes":             `[{"op":"remove","path":"/spec/volumes/0"}]`,
		"a device":                `[{"op":"add","path":"/spec/domain/devices/rng","value":{}}]`,
		"the grace and a volume":  `[{"op":"add","path":"/spec/terminationGracePeriodSeconds","value":7},{"op":"remove","path":"/spec/volumes/0"}]`,
		"a link of a VMI of none": link("down"),
	} {
		require.ErrorContains(t, change(data), "cannot be changed", what)
	}
	require.NoError(t, change(`[{"op":"add","path":"/spec/terminationGracePeriodSeconds","value":7}]`), "the time to power off")
	require.NoError(t, change(`[{"op":"replace","path":"/spec/terminationGracePeriodSeconds","value":0}]`))
	require.ErrorContains(t, change(link("down")[:len(link("down"))-1]+`,{"op":"add","path":"/metadata/ownerReferences","value":[`+ownerOf("VirtualMachine", "x")+`]}]`),
		"cannot be changed", "an owner in the same write")
	require.NoError(t, patch(`{"metadata":{"finalizers":["`+vmi.Finalizer+`"],"labels":{"kubevirt.io/nodeName":"n1"},"annotations":{"kubevirt.io/vm-generation":"2"}}}`))
	require.NoError(t, patch(`{"metadata":{"ownerReferences":[`+ownerOf("VirtualMachine", "x")+`]}}`), "it adopts what nothing controls")
	err = patch(`{"metadata":{"ownerReferences":[` + ownerOf("VirtualMachine", "y") + `]}}`)
	require.ErrorContains(t, err, "virt-controller may change of the owners of a VMI only", "it takes no VMI from its owner")
	for what, data := range map[string]string{
		"another field of the interface":  `[{"op":"add","path":"/spec/domain/devices/interfaces/0/model","value":"e1000"}]`,
		"its MAC address":                 link("down")[:len(link("down"))-1] + `,{"op":"add","path":"/spec/domain/devices/interfaces/0/macAddress","value":"02:00:00:00:00:77"}]`,
		"one that is absent":              link("absent"),
		"one that was absent":             `[{"op":"replace","path":"/spec/domain/devices/interfaces/1/state","value":"up"}]`,
		"one that was absent, by removal": `[{"op":"remove","path":"/spec/domain/devices/interfaces/1/state"}]`,
		"another interface":               `[{"op":"add","path":"/spec/domain/devices/interfaces/-","value":{"name":"more","bridge":{},"state":"down"}}]`,
		"one less":                        `[{"op":"remove","path":"/spec/domain/devices/interfaces/1"}]`,
		"another order":                   `[{"op":"move","from":"/spec/domain/devices/interfaces/0","path":"/spec/domain/devices/interfaces/1"}]`,
		"another name":                    `[{"op":"replace","path":"/spec/domain/devices/interfaces/0/name","value":"x"}]`,
		"the link and the memory":         link("down")[:len(link("down"))-1] + `,{"op":"replace","path":"/spec/domain/memory/guest","value":"1Gi"}]`,
		"the link and the grace":          link("down")[:len(link("down"))-1] + `,{"op":"replace","path":"/spec/terminationGracePeriodSeconds","value":9}]`,
	} {
		require.ErrorContains(t, change(data), "cannot be changed", what)
	}
	for _, state := range []string{"down", "up"} {
		require.NoError(t, change(link(state)), state)
	}
	require.NoError(t, change(`[{"op":"remove","path":"/spec/domain/devices/interfaces/0/state"}]`), "which stands for up")
	user, err := client.New(cfg)
	require.NoError(t, err)
	_, err = user.VirtualMachineInstances(v.Namespace).Patch(t.Context(), v.Name, types.JSONPatchType, []byte(link("down")), metav1.PatchOptions{})
	require.ErrorContains(t, err, "cannot be changed", "a user")
	require.NoError(t, patch(`{"metadata":{"ownerReferences":null}}`))
	require.NoError(t, patch(`{"metadata":{"ownerReferences":[`+ownerOf("VirtualMachineInstanceReplicaSet", "x")+`]}}`))
	require.ErrorContains(t, change(link("down")), "cannot be changed", "of a replica set")
	require.NoError(t, patch(`{"metadata":{"ownerReferences":null}}`))
}

// ownerOf is a reference to an owner of the kind, which controls the object, as JSON.
func ownerOf(kind, uid string) string {
	return `{"apiVersion":"kubevirt.io/v1","kind":"` + kind + `","name":"x","uid":"` + uid + `","controller":true,"blockOwnerDeletion":true}`
}

func TestAttackTheTokenOfTheControllerChangesNothingOfAVMI(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := guest("vm")
	attackable(v)
	changeVMIs(t, world.config, home, s.create(v))
}

// What no token of Podvisor reads: with a Secret comes what is in it.
func TestAttackTheTokensOfTheComponentsReadNoSecret(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for name, cfg := range map[string]*rest.Config{"virt-controller": withToken(t, world.config, home, "virt-controller"), "virt-handler": onNode1(t, world.config, home)} {
		kube, err := kubernetes.NewForConfig(cfg)
		require.NoError(t, err)
		_, err = kube.CoreV1().Secrets(s.name).Get(t.Context(), "s", metav1.GetOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
		_, err = kube.CoreV1().Secrets(s.name).List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
		_, err = kube.CoreV1().ConfigMaps(s.name).List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
		_, err = kube.CoreV1().ServiceAccounts(s.name).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
	}
}
