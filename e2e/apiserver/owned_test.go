package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/internal/scheduler/revision"
	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/scheduler/sizing"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config/live"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// builds are the ways in which these tests render pods. Each stands for a build of
// virt-controller, which a pod names.
var builds = map[string]pod.Launcher{
	"":             {Image: "podvisor/virt-launcher:v1", AllowEmulation: true},
	"before":       {Image: "podvisor/virt-launcher:v0", AllowEmulation: true},
	"init-copy":    {Image: "podvisor/virt-launcher:v1", AllowEmulation: true, ContainerDisks: pod.InitCopy},
	"no-emulation": {Image: "podvisor/virt-launcher:v1"},
	followed:       {Image: "podvisor/virt-launcher:v1", AllowEmulation: true},
}

// followed is the build that follows the configuration of the cluster.
const followed = "followed"

// build is the way in which the build renders pods.
func build(name string) pod.Config {
	l := builds[name]
	l.Build = name
	return pod.Config{Launcher: l}
}

// newOwned is the webhook for what virt-controller creates, with its rights.
func newOwned(ctx context.Context, as *rest.Config) (admission.Owned, error) {
	owners, err := client.New(as)
	if err != nil {
		return admission.Owned{}, err
	}
	kube, err := kubernetes.NewForConfig(as)
	if err != nil {
		return admission.Owned{}, err
	}
	networks, err := dynamic.NewForConfig(as)
	if err != nil {
		return admission.Owned{}, err
	}
	definitions, err := metadata.NewForConfig(as)
	if err != nil {
		return admission.Owned{}, err
	}
	settings, err := live.New(live.Config{KubeVirts: owners.KubeVirts(""), Metadata: definitions})
	if err != nil {
		return admission.Owned{}, err
	}
	go func() { _ = settings.Run(ctx) }()
	named := func(ctx context.Context) instancetype.Lookup { return sizing.Lookup(ctx, owners, kube) }
	return admission.Owned{Owners: owners, Lookup: named, Launchers: admission.Launchers{
		Rendering: func(name string) (pod.Config, bool) {
			_, ok := builds[name]
			c := build(name)
			if name == followed {
				c.Cluster = settings.Config()
			}
			return c, ok
		},
		Kube: kube,
		Facts: func(ctx context.Context, v *vmi.VirtualMachineInstance) (pod.Facts, error) {
			return controller.Facts(ctx, kube, networks, v)
		},
	}}, nil
}

// answerOwned answers the webhook for the VMIs that virt-controller creates, with its
// rights, as long as the process runs: without an answer they are refused. The other
// webhooks of the manifests are not answered.
func answerOwned(ctx context.Context, cfg *rest.Config, clusterName, namespace string) error {
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	configurations := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	c, err := configurations.Get(ctx, certificate.Webhooks, metav1.GetOptions{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return certificate.Below(w.Name) == admission.OwnedPath
	})
	if i < 0 {
		return errors.New("the manifests have no webhook for the VMIs that virt-controller creates")
	}
	as := rest.CopyConfig(cfg)
	as.Impersonate.UserName = "system:serviceaccount:" + namespace + ":virt-controller"
	owned, err := newOwned(ctx, as)
	if err != nil {
		return err
	}
	host := "virt-controller." + namespace + ".svc"
	bundle, _, err := certificate.Policy{Name: host, Hosts: []string{host}}.Renew(certificate.Bundle{}, time.Now())
	if err != nil {
		return err
	}
	pair, err := bundle.KeyPair()
	if err != nil {
		return err
	}
	l, err := listenAt(clusterName)
	if err != nil {
		return err
	}
	// The other webhooks of the Service have no answer, and objects are admitted without one.
	paths := http.NewServeMux()
	paths.Handle("/{$}", owned) // until virt-certificates sets the paths
	paths.Handle(admission.OwnedPath, owned)
	paths.Handle(admission.OwnedPath+"/", owned)
	s := &http.Server{Handler: paths, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		_ = s.Serve(tls.NewListener(l, &tls.Config{GetCertificate: (&trusted{kube: kube, namespace: namespace, last: pair}).certificate, MinVersion: tls.VersionTLS13}))
	}()
	_, err = kube.DiscoveryV1().EndpointSlices(namespace).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "virt-controller", Labels: map[string]string{discoveryv1.LabelServiceName: "virt-controller"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.ControlPlane.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("webhooks"), Port: new(int32(l.Addr().(*net.TCPAddr).Port))}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), "value": bundle.Authorities}})
	if err != nil {
		return err
	}
	_, err = configurations.Patch(ctx, certificate.Webhooks, types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

// trusted is the certificate that the API server trusts in the webhooks: the one of
// answerOwned, until a test has virt-certificates keep the installation.
type trusted struct {
	kube      kubernetes.Interface
	namespace string

	mu   sync.Mutex
	last *tls.Certificate
}

// certificate is the one in the Secret of virt-controller if its authority is that of the
// webhooks, and else the last one for which that was so.
func (c *trusted) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := c.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(hello.Context(), certificate.Webhooks, metav1.GetOptions{})
	if err != nil {
		return c.last, nil
	}
	s, err := c.kube.CoreV1().Secrets(c.namespace).Get(hello.Context(), certificate.ServingSecret, metav1.GetOptions{})
	if err != nil {
		return c.last, nil
	}
	pair, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return c.last, nil
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(w.Webhooks[0].ClientConfig.CABundle)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: authorities}); err == nil {
		c.last = &pair
	}
	return c.last, nil
}

// owners are a VM and a replica set, with a Secret and a disk, that virt-controller may
// make VMIs for.
func (s space) owners() (*vmi.VirtualMachine, *vmi.VirtualMachineInstanceReplicaSet) {
	s.t.Helper()
	seed := vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: &corev1.LocalObjectReference{Name: "s"}}})
	m := vmitest.NewVM(vmi.RunHalted, vmitest.WithContainerDisk("root", "example/fedora:40"), seed)
	m.ObjectMeta = metav1.ObjectMeta{Name: "web"}
	m, err := world.vmis.VirtualMachines(s.name).Create(s.t.Context(), m, metav1.CreateOptions{})
	require.NoError(s.t, err)
	set := vmitest.NewReplicaSet(0, vmitest.WithContainerDisk("root", "example/fedora:40"), seed)
	set.ObjectMeta = metav1.ObjectMeta{Name: "many"}
	set, err = world.vmis.VirtualMachineInstanceReplicaSets(s.name).Create(s.t.Context(), set, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return m, set
}

// With the token of virt-controller a thief must not start a guest of his own beside the
// Secrets of the tenant.
func TestAttackTheTokenOfTheControllerMakesNoVMIThatNoOwnerAsksFor(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	c, err := client.New(withToken(t, world.config, home, "virt-controller"))
	require.NoError(t, err)
	m, set := s.owners()
	create := func(v *vmi.VirtualMachineInstance) error {
		_, err := c.VirtualMachineInstances(s.name).Create(t.Context(), v, dryRun)
		return err
	}
	for kind, asked := range map[string]*vmi.VirtualMachineInstance{"VM": vm.Instance(m, defaults.Profile{}, nil), "set": replicaset.Instance(set, replicaset.Name(set, 3), 0)} {
		require.NoError(t, create(asked.DeepCopy()), "what a %s asks for is permitted", kind)
		for what, change := range map[string]func(*vmi.VirtualMachineInstance){
			"of no owner": func(v *vmi.VirtualMachineInstance) { v.OwnerReferences = nil },
			"of a Node": func(v *vmi.VirtualMachineInstance) {
				v.OwnerReferences[0].APIVersion, v.OwnerReferences[0].Kind = "v1", "Node"
			},
			"of an owner that is not there": func(v *vmi.VirtualMachineInstance) { v.OwnerReferences[0].Name = "gone" },
			"of an owner before":            func(v *vmi.VirtualMachineInstance) { v.OwnerReferences[0].UID = "before" },
			"of a name that is free":        func(v *vmi.VirtualMachineInstance) { v.Name = "bank" },
			"with the label of a Service": func(v *vmi.VirtualMachineInstance) {
				v.Labels = maps.Clone(v.Labels)
				if v.Labels == nil {
					v.Labels = map[string]string{}
				}
				v.Labels["app"] = "shop"
			},
			"with a network of others": func(v *vmi.VirtualMachineInstance) {
				v.Annotations = maps.Clone(v.Annotations)
				if v.Annotations == nil {
					v.Annotations = map[string]string{}
				}
				v.Annotations["v1.multus-cni.io/default-network"] = "kube-system/x"
			},
			"with a class that ends other pods": func(v *vmi.VirtualMachineInstance) { v.Spec.PriorityClassName = "system-node-critical" },
			"with another Secret": func(v *vmi.VirtualMachineInstance) {
				v.Spec.Volumes[1].CloudInitNoCloud.UserDataSecretRef.Name = "other"
			},
			"with a disk of the thief": func(v *vmi.VirtualMachineInstance) { v.Spec.Volumes[0].ContainerDisk.Image = "example/thief" },
			"with one more disk":       func(v *vmi.VirtualMachineInstance) { vmitest.WithContainerDisk("thief", "example/thief")(v) },
			"with a network": func(v *vmi.VirtualMachineInstance) {
				v.Spec.Domain.Devices.AutoattachPodInterface = nil
				vmitest.WithMasquerade("thief")(v)
			},
		} {
			v := asked.DeepCopy()
			change(v)
			err := create(v)
			require.True(t, apierrors.IsForbidden(err), "the VMI of a %s %s: %v", kind, what, err)
			require.ErrorContains(t, err, "owned.virt-controller.kubevirt.io", "the VMI of a %s %s", kind, what)
		}
	}
	_, err = world.vmis.VirtualMachineInstances(s.name).Create(t.Context(), guest("users"), dryRun)
	require.NoError(t, err, "VMIs of users are not asked for by others")
}

func TestAttackTheTokenOfTheControllerChangesOfAVMOnlyWhenItRuns(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	m, set := s.owners()
	c, err := client.New(withToken(t, world.config, home, "virt-controller"))
	require.NoError(t, err)
	patch := func(data string) error {
		_, err := c.VirtualMachines(s.name).Patch(t.Context(), m.Name, types.MergePatchType, []byte(data), metav1.PatchOptions{})
		return err
	}
	for what, data := range map[string]string{
		"its template":                        `{"spec":{"template":{"spec":{"hostname":"thief"}}}}`,
		"a label of its VMIs":                 `{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`,
		"its template, with its run strategy": `{"spec":{"runStrategy":"Always","template":{"spec":{"hostname":"thief"}}}}`,
		"a label":                             `{"metadata":{"labels":{"a":"b"}}}`,
		"an annotation":                       `{"metadata":{"annotations":{"a":"b"}}}`,
		"an owner":                            `{"metadata":{"ownerReferences":[` + ownerOf("VirtualMachine", "x") + `]}}`,
		"a finalizer of another":              `{"metadata":{"finalizers":["example.com/x"]}}`,
	} {
		err := patch(data)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
		require.ErrorContains(t, err, "virt-controller may change of a VirtualMachine only", what)
	}
	require.NoError(t, patch(`{"spec":{"runStrategy":"Always"}}`))
	require.NoError(t, patch(`{"spec":{"runStrategy":null,"running":false}}`))
	require.NoError(t, patch(`{"metadata":{"finalizers":[]}}`))
	_, err = c.VirtualMachineInstanceReplicaSets(s.name).Patch(t.Context(), set.Name, types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = c.VirtualMachineInstanceReplicaSets(s.name).Patch(t.Context(), set.Name, types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{}, "scale")
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.True(t, apierrors.IsForbidden(c.VirtualMachines(s.name).Delete(t.Context(), m.Name, metav1.DeleteOptions{})))
}

func TestAttackTheTokenOfTheControllerMakesAndDeletesNoRevisionsOfOthers(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	kube, err := kubernetes.NewForConfig(withToken(t, world.config, home, "virt-controller"))
	require.NoError(t, err)
	own := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: "revision-start-vm-u-1", Labels: map[string]string{vmi.AppLabel: vm.RevisionApp},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "web", UID: "u", Controller: new(true)}},
		},
		Data: runtime.RawExtension{Raw: []byte(`{}`)},
	}
	theirs, admins := kube.AppsV1().ControllerRevisions(s.name), world.kube.AppsV1().ControllerRevisions(s.name)
	for what, change := range map[string]func(*appsv1.ControllerRevision){
		"of another name":  func(r *appsv1.ControllerRevision) { r.Name = "web-1" },
		"of another label": func(r *appsv1.ControllerRevision) { r.Labels = nil },
		"of a Deployment": func(r *appsv1.ControllerRevision) {
			r.OwnerReferences[0].Kind, r.OwnerReferences[0].APIVersion = "StatefulSet", "apps/v1"
		},
		"that nothing controls": func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].Controller = nil },
	} {
		r := own.DeepCopy()
		change(r)
		_, err := theirs.Create(t.Context(), r, metav1.CreateOptions{})
		require.True(t, apierrors.IsForbidden(err), "a revision %s: %v", what, err)
		require.ErrorContains(t, err, "start revisions of VirtualMachines only", what)
		_, err = admins.Create(t.Context(), r, metav1.CreateOptions{})
		require.NoError(t, err)
		err = theirs.Delete(t.Context(), r.Name, metav1.DeleteOptions{})
		require.ErrorContains(t, err, "start revisions of VirtualMachines only", what)
		require.NoError(t, admins.Delete(t.Context(), r.Name, metav1.DeleteOptions{}))
	}
	_, err = theirs.Create(t.Context(), own, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, theirs.Delete(t.Context(), own.Name, metav1.DeleteOptions{}))

	// A VM starts with what its revision holds, also with the networks that are named there.
	small := &instancetype.VirtualMachineInstancetype{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	small.Spec.CPU.Guest, small.Spec.Memory.Guest = 1, resource.MustParse("64Mi")
	small.Spec.Annotations = map[string]string{"example.com/signs": "<a> & \u2028 \"é\""} // which encoders write differently
	small, err = client.Of(world.vmis, instancetype.VirtualMachineInstancetypes, s.name).Create(t.Context(), small, metav1.CreateOptions{})
	require.NoError(t, err)
	m := vmitest.NewVM(vmi.RunHalted)
	m.Namespace, m.Name, m.Spec.Template.Spec.Domain.Memory = s.name, "web", nil
	m.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: small.Name, Kind: "VirtualMachineInstancetype"}
	m, err = world.vmis.VirtualMachines(s.name).Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	honest, err := revision.Holding(m, small)
	require.NoError(t, err)
	_, err = theirs.Create(t.Context(), honest, dryRun)
	require.NoError(t, err, "what the VM names is permitted")
	small.Spec.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "default/evil"}
	forged, err := revision.Holding(m, small)
	require.NoError(t, err)
	_, err = theirs.Create(t.Context(), forged, dryRun)
	require.ErrorContains(t, err, "names no instance type and no preference, as they are stored now")
	twice := honest.DeepCopy()
	twice.Data.Raw = []byte(strings.Replace(string(honest.Data.Raw), `{"apiVersion"`, `{"spec":{"annotations":{"k8s.v1.cni.cncf.io/networks":"default/evil"}},"apiVersion"`, 1))
	require.NotEqual(t, honest.Data.Raw, twice.Data.Raw)
	_, err = theirs.Create(t.Context(), twice, dryRun)
	require.ErrorContains(t, err, "names no instance type and no preference, as they are stored now", "with a key twice")
	forged.Name, forged.Labels = "revision-start-vm-u-1", own.Labels
	for _, kind := range []string{"kind", "Kind"} {
		forged.Data.Raw = []byte(strings.Replace(string(forged.Data.Raw), `"kind"`, `"`+kind+`"`, 1))
		_, err = theirs.Create(t.Context(), forged, dryRun)
		require.ErrorContains(t, err, "revisions that hold an object only with the labels that name it", "without its labels no webhook is asked: %s", kind)
	}
}

func TestAttackTheTokenOfTheControllerSpoilsNotItsSecret(t *testing.T) {
	t.Parallel()
	kube, err := kubernetes.NewForConfig(withToken(t, world.config, home, "virt-controller"))
	require.NoError(t, err)
	// It may write one Secret by its role: the policy holds for every one.
	n := newSpace(t)
	_, err = world.kube.RbacV1().Roles(n.name).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "writes"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "update", "delete"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = world.kube.RbacV1().RoleBindings(n.name).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "writes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "writes"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: home, Name: "virt-controller"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	secret, err := world.kube.CoreV1().Secrets(n.name).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: certificate.ServingSecret},
		Data:       map[string][]byte{corev1.TLSCertKey: []byte("c"), corev1.TLSPrivateKeyKey: []byte("k")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	theirs := kube.CoreV1().Secrets(n.name)
	const only = "only whether its webhooks are to be held"
	eventually(t, func() error { // until the role is known
		if _, err = theirs.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "more"}}, dryRun); !strings.Contains(err.Error(), only) {
			return err
		}
		return nil
	})
	require.ErrorContains(t, theirs.Delete(t.Context(), secret.Name, metav1.DeleteOptions{}), only)
	for what, change := range map[string]func(*corev1.Secret){
		"with another certificate": func(s *corev1.Secret) { s.Data[corev1.TLSCertKey] = []byte("x") },
		"without its key":          func(s *corev1.Secret) { delete(s.Data, corev1.TLSPrivateKeyKey) },
		"with more":                func(s *corev1.Secret) { s.StringData = map[string]string{"more": "x"} },
		"for ever":                 func(s *corev1.Secret) { s.Immutable = new(true) },
		"that goes with another": func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"}}
		},
		"that stays": func(s *corev1.Secret) { s.Finalizers = []string{"example.com/stays"} },
		"":           func(s *corev1.Secret) { s.Data[certificate.HoldKey] = []byte(time.Now().UTC().Format(time.RFC3339)) },
	} {
		s := secret.DeepCopy()
		change(s)
		_, err = theirs.Update(t.Context(), s, metav1.UpdateOptions{DryRun: dryRun.DryRun})
		if what == "" {
			require.NoError(t, err, "what virt-controller writes is permitted")
			continue
		}
		require.ErrorContains(t, err, only, what)
	}
}

func TestAVMSaysThatItsVMIWaitsForTheWebhook(t *testing.T) {
	t.Parallel()
	e := installElsewhere(t, "owned")
	cfg := e.as(otherNamespace, "virt-controller", "")
	own, err := client.New(cfg)
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	c, err := controller.New(controller.Config{Client: own, Kube: kube, Launcher: build("no-emulation").Launcher})
	require.NoError(t, err)
	background(t, c.Run)
	admin, err := client.New(e.config)
	require.NoError(t, err)
	m := vmitest.NewVM(vmi.RunAlways)
	m.ObjectMeta = metav1.ObjectMeta{Name: "early"}
	eventually(t, func() error {
		_, err := admin.VirtualMachines("default").Create(t.Context(), m, metav1.CreateOptions{})
		return err
	})
	eventually(t, func() error {
		m, err := admin.VirtualMachines("default").Get(t.Context(), "early", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c := m.Status.Condition(vmi.ConditionFailure); c == nil || c.Reason != vm.FailedCreate || !strings.Contains(c.Message, `failed calling webhook "owned.virt-controller.kubevirt.io"`) {
			return fmt.Errorf("the VM does not say what it waits for: %+v", m.Status)
		}
		return nil
	})
	_, err = admin.VirtualMachineInstances("default").Create(t.Context(), guest("users"), metav1.CreateOptions{})
	require.NoError(t, err, "a VMI of a user waits for no answer")
	require.NoError(t, answerOwned(t.Context(), e.config, e.cluster.Name, otherNamespace))
	eventually(t, func() error {
		_, err := admin.VirtualMachineInstances("default").Get(t.Context(), "early", metav1.GetOptions{})
		return err
	})
}
