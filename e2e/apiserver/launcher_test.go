package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// withToken is the configuration of a client with a token that the API server issues
// for the account, as a pod has it.
func withToken(t *testing.T, cfg *rest.Config, namespace, account string) *rest.Config {
	t.Helper()
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	r, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	out := rest.AnonymousClientConfig(cfg)
	out.BearerToken, out.QPS, out.Burst = r.Status.Token, 500, 1000
	return out
}

// launcherOf is the launcher pod of an invented VMI in the namespace.
func launcherOf(t *testing.T, namespace string, change ...vmitest.Option) *corev1.Pod {
	t.Helper()
	v := vmitest.New(change...)
	v.Namespace = namespace
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "podvisor/virt-launcher:v1", AllowEmulation: true}})
	require.NoError(t, err)
	return p
}

// onlyTheWebhookRefuses requires that all policies permitted the pod of an invented VMI:
// the API server asks the webhook after them.
func onlyTheWebhookRefuses(t *testing.T, err error, what ...any) {
	t.Helper()
	require.Error(t, err, what...)
	require.ErrorContains(t, err, `"owned.virt-controller.kubevirt.io"`, what...)
}

func TestThePolicyPermitsEveryPodThatRenderMakes(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	_, err := world.kube.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "important"}, Value: 7}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.account("robot")
	files, err := filepath.Glob("../../scheduler/pod/testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		var p corev1.Pod
		require.NoError(t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), "example/virt-launcher", "podvisor/virt-launcher")), &p))
		require.Equal(t, "default", p.Namespace)
		p.Namespace, p.Spec.Containers[0].Args[3] = s.name, s.name
		_, err = s.asController().Pods(s.name).Create(t.Context(), &p, dryRun)
		onlyTheWebhookRefuses(t, err, f)
	}
}

// onSCSI puts all disks on the bus that has room for so many.
func onSCSI(v *vmi.VirtualMachineInstance) {
	for i := range v.Spec.Domain.Devices.Disks {
		v.Spec.Domain.Devices.Disks[i].Disk = &vmi.DiskTarget{Bus: vmi.DiskBusSCSI}
	}
}

// An expression that costs the API server too much is an error, which refuses the pod.
func TestThePolicyCanAffordTheLargestPod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	secret := &corev1.LocalObjectReference{Name: "s"}
	var most []vmitest.Option
	for i := range 255 {
		most = append(most, vmitest.WithContainerDisk(fmt.Sprintf("%s-%d", strings.Repeat("d", 50), i), "example/fedora:40"))
	}
	most = append(most, vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: secret, NetworkDataSecretRef: secret}}))
	var ports []vmi.Port
	for i := range 1024 {
		ports = append(ports, vmi.Port{Port: int32(i + 1)})
	}
	v := vmitest.New(append(most, vmitest.WithMasquerade("default", ports...))...)
	onSCSI(v)
	v.Namespace = s.name
	for i := range 256 {
		name := fmt.Sprintf("%s-%d", strings.Repeat("s.", 100), i)
		v.Spec.AccessCredentials = append(v.Spec.AccessCredentials, vmi.AccessCredential{UserPassword: &vmi.UserPasswordCredential{
			Source: vmi.UserPasswordSource{Secret: &vmi.CredentialSecret{SecretName: strings.Replace(name, ".-", "-", 1)}}, PropagationMethod: vmi.UserPasswordPropagationMethod{QemuGuestAgent: &vmi.AgentPropagation{}},
		}})
	}
	for _, way := range []pod.ContainerDisks{pod.ImageVolume, pod.InitCopy} {
		p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "podvisor/virt-launcher:v1", AllowEmulation: true, ContainerDisks: way}})
		require.NoError(t, err)
		_, err = s.asController().Pods(s.name).Create(t.Context(), p, dryRun)
		onlyTheWebhookRefuses(t, err, way)
	}
	var claims []vmitest.Option
	var devices []string
	for i := range 256 {
		name := fmt.Sprintf("%s-%d", strings.Repeat("c", 50), i)
		claims = append(claims, vmitest.WithClaim(name, name))
		if i%2 == 0 {
			devices = append(devices, name)
		}
	}
	v = vmitest.New(claims...)
	onSCSI(v)
	v.Namespace = s.name
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "podvisor/virt-launcher:v1", AllowEmulation: true}, Facts: pod.Facts{Claims: block(devices...)}})
	require.NoError(t, err)
	_, err = s.asController().Pods(s.name).Create(t.Context(), p, dryRun)
	onlyTheWebhookRefuses(t, err, "claims")
}

// What a thief of virt-controller's token tries.
func TestAttackTheTokenOfTheControllerMakesNothingButLauncherPods(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	open, err := world.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.name = open.Name // where any pod may be made
	s.allowPods()
	attack(t, world.config, home, s.name)
}

// attack tries with the token of virt-controller in namespace to make other pods in
// the tenant's namespace than those of VMIs, and such pods elsewhere.
func attack(t *testing.T, cfg *rest.Config, namespace, tenant string) {
	t.Helper()
	kube, err := kubernetes.NewForConfig(withToken(t, cfg, namespace, "virt-controller"))
	require.NoError(t, err)
	secret := &corev1.LocalObjectReference{Name: "s"}
	rendered := launcherOf(t, tenant, vmitest.WithContainerDisk("root", "example/fedora:40"),
		vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: secret}}))
	_, err = kube.CoreV1().Pods(tenant).Create(t.Context(), rendered, dryRun)
	onlyTheWebhookRefuses(t, err, "what virt-controller makes is permitted")
	security := func(f func(*corev1.SecurityContext)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { f(p.Spec.Containers[0].SecurityContext) }
	}
	with := func(v corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: v})
		}
	}
	serving := func(f func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			shared := launcherOf(t, tenant, withSharedSecret)
			p.Spec.Volumes = append(p.Spec.Volumes, shared.Spec.Volumes[len(shared.Spec.Volumes)-2:]...)
			p.Spec.InitContainers = shared.Spec.InitContainers
			f(&p.Spec.InitContainers[0])
		}
	}
	served := rendered.DeepCopy()
	serving(func(*corev1.Container) {})(served)
	_, err = kube.CoreV1().Pods(tenant).Create(t.Context(), served, dryRun)
	onlyTheWebhookRefuses(t, err, "the server of a file system is permitted")
	for name, change := range map[string]func(*corev1.Pod){
		"with a server of another image":     serving(func(c *corev1.Container) { c.Image = "example/thief" }),
		"with a server that is a shell":      serving(func(c *corev1.Container) { c.Command[0] = "sh" }),
		"with a server of the root":          serving(func(c *corev1.Container) { c.Command[5] = "/" }),
		"with a server at another socket":    serving(func(c *corev1.Container) { c.Command[3] = "/var/run/kubevirt/virtiofs-containers/../x.sock" }),
		"with a server that writes a Secret": serving(func(c *corev1.Container) { c.VolumeMounts[0].ReadOnly = false }),
		"with a server that runs as root":    serving(func(c *corev1.Container) { c.SecurityContext.RunAsUser = new(int64(0)) }),
		"with a server of all volumes": serving(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "private", MountPath: "/private"})
		}),
		"with a server that sees the launcher's program": serving(func(c *corev1.Container) { c.VolumeMounts[0].MountPath = "/usr/bin" }),
		"without an owner":                 func(p *corev1.Pod) { p.OwnerReferences = nil },
		"of another kind":                  func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "v1", "Node" },
		"of a version that does not exist": func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "kubevirt.io/v9" },
		"that no VMI controls":             func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil },
		"with a second owner": func(p *corev1.Pod) {
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u"})
		},
		"of another name":             func(p *corev1.Pod) { p.Name = "web" },
		"of another VMI":              func(p *corev1.Pod) { p.Labels[vmi.CreatedByLabel] = "other" },
		"of a chosen node":            func(p *corev1.Pod) { p.Spec.NodeName = "n1" },
		"on the node's network":       func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"among the node's processes":  func(p *corev1.Pod) { p.Spec.HostPID = true },
		"in the node's IPC":           func(p *corev1.Pod) { p.Spec.HostIPC = true },
		"with a privileged container": security(func(s *corev1.SecurityContext) { s.Privileged, s.AllowPrivilegeEscalation = new(true), nil }),
		"with more capabilities":      security(func(s *corev1.SecurityContext) { s.Capabilities.Add = append(s.Capabilities.Add, "SYS_ADMIN") }),
		"with all the runtime's":      security(func(s *corev1.SecurityContext) { s.Capabilities.Drop = nil }),
		"with unconfined system calls": security(func(s *corev1.SecurityContext) {
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		}),
		"of root":                          security(func(s *corev1.SecurityContext) { s.RunAsUser, s.RunAsNonRoot = new(int64), nil }),
		"that may escalate":                security(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = nil }),
		"without a filter of system calls": func(p *corev1.Pod) { p.Spec.SecurityContext.SeccompProfile = nil },
		"of root as a whole": func(p *corev1.Pod) {
			p.Spec.SecurityContext.RunAsUser, p.Spec.SecurityContext.RunAsNonRoot = new(int64), nil
		},
		"without AppArmor": func(p *corev1.Pod) {
			p.Annotations["container.apparmor.security.beta.kubernetes.io/compute"] = "unconfined"
		},
		"with the token of an account": func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil },
		"with a projected token":       with(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}}}}),
		"with a path of the node":      with(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
		"with a claim over the launcher": func(p *corev1.Pod) {
			with(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}})(p)
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/var/run/kubevirt-private/vmi-disks/../../../../usr/bin"})
		},
		"with a claim as a device of the container": func(p *corev1.Pod) {
			with(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}})(p)
			p.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "v", DevicePath: "/etc/ld.so.preload"}}
		},
		"of a full image that begins so": func(p *corev1.Pod) { p.Spec.Containers[0].Image = "podvisor/virt-launcher-full-thief:1" },
		"with a claim for its state elsewhere": func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "vm-state", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}})
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "vm-state", MountPath: "/usr/share/OVMF", SubPath: "nvram"})
		},
		"with a part of a container disk": func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[4].SubPath = "etc" },
		"with a ConfigMap over the launcher": func(p *corev1.Pod) {
			with(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *secret}})(p)
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/usr/bin", ReadOnly: true})
		},
		"with a ConfigMap where claims are": func(p *corev1.Pod) {
			with(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *secret}})(p)
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/var/run/kubevirt-private/vmi-disks/root", ReadOnly: true})
		},
		"with a token where containers have it": func(p *corev1.Pod) {
			with(serviceAccountToken())(p)
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true})
		},
		"with a token for another audience": func(p *corev1.Pod) {
			v := serviceAccountToken()
			v.Projected.Sources[0].ServiceAccountToken.Audience = "vault"
			with(v)(p)
		},
		"with a token and a Secret": func(p *corev1.Pod) {
			v := serviceAccountToken()
			v.Projected.Sources = append(v.Projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: *secret}})
			with(v)(p)
		},
		"with a folder of the node where disks are": func(p *corev1.Pod) {
			with(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data/disks", Type: new(corev1.HostPathDirectory)}})(p)
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/var/run/kubevirt-private/vmi-disks/root"})
		},
		"of an image of the thief":     func(p *corev1.Pod) { p.Spec.Containers[0].Image = "example/thief" },
		"of a registry with that name": func(p *corev1.Pod) { p.Spec.Containers[0].Image = "podvisor/virt-launcher:5000/thief" },
		"of an image that begins so":   func(p *corev1.Pod) { p.Spec.Containers[0].Image = "podvisor/virt-launcher-thief" },
		"with a command of the thief": func(p *corev1.Pod) {
			p.Spec.Containers[0].Command = []string{"cat", "/var/run/kubevirt/secrets/seed/user/userdata"}
		},
		"with a library of the thief": func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/tmp/x"}} },
		"with a Secret in a variable for a network": func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: vmi.NetworkResourceVariable + "lan", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: *secret, Key: "x"}}}}
		},
		"with a Secret in its environment": func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *secret}}}
		},
		"with an image over the launcher": func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[4].MountPath = "/usr/bin" },
		"with an image over its parent": func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts[4].MountPath = "/var/run/kubevirt/container-disks/../../../../usr/bin"
		},
		"with a program that is run by hand": func(p *corev1.Pod) {
			p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}}}
		},
		"with a program that is run until it has ended well": func(p *corev1.Pod) {
			p.Spec.Containers[0].StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}}}
		},
		"with a connection to another address until it is there": func(p *corev1.Pod) {
			p.Spec.Containers[0].StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "192.0.2.1", Port: intstr.FromInt32(22)}}}
		},
		"with a port of the node": func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 22, HostPort: 22}}
		},
		"with one more container": func(p *corev1.Pod) {
			c := *p.Spec.Containers[0].DeepCopy()
			c.Name, c.Image = "thief", "example/thief"
			p.Spec.Containers = append(p.Spec.Containers, c)
		},
		"with an init container that reads the Secret": func(p *corev1.Pod) {
			c := *p.Spec.Containers[0].DeepCopy()
			c.ReadinessProbe = nil // no init container has one
			c.Name, c.Image, c.Command, c.Args = "volumeroot", "example/thief", []string{"/var/run/kubevirt/bin/virt-launcher", "copy-disk", "--to", "/var/run/kubevirt/container-disks/root"}, nil
			p.Spec.InitContainers = []corev1.Container{c}
		},
	} {
		p := rendered.DeepCopy()
		change(p)
		_, err := kube.CoreV1().Pods(tenant).Create(t.Context(), p, dryRun)
		require.True(t, apierrors.IsForbidden(err), "a pod %s: %v", name, err)
		require.ErrorContains(t, err, "virt-controller may", "a pod %s", name)
	}
	admin, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	for _, there := range []string{"kube-system", "kube-public", "kube-node-lease", namespace} {
		_, err := admin.CoreV1().ServiceAccounts(there).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
		_, err = kube.CoreV1().Pods(there).Create(t.Context(), launcherOf(t, there), dryRun)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", there, err)
		require.ErrorContains(t, err, "virt-controller may make no pod in namespace "+there)
	}
}

// withSharedSecret adds a Secret that the guest has as a file system.
func withSharedSecret(v *vmi.VirtualMachineInstance) {
	v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: "keys", VolumeSource: vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "keys"}}})
	v.Spec.Domain.Devices.Filesystems = []vmi.Filesystem{{Name: "keys", Virtiofs: &vmi.FilesystemVirtiofs{}}}
}

// serviceAccountToken is the volume of a serviceAccount volume.
func serviceAccountToken() corev1.VolumeSource {
	v := vmitest.New(vmitest.WithDisk("token", vmi.VolumeSource{ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "default"}}))
	part, _ := volume.Pod(v.Spec.Volumes, volume.Cluster{})
	return part.Volumes[0].VolumeSource
}

// account makes a service account in the namespace.
func (s space) account(name string) {
	s.t.Helper()
	_, err := world.kube.CoreV1().ServiceAccounts(s.name).Create(s.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// An administrator names the folders of nodes that disks may be in.
func TestAHostDiskIsPermittedInTheFoldersThatThePolicyNames(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	ask := newSweeper(t, s.name, func(p *admissionv1.ValidatingAdmissionPolicy) {
		require.Equal(t, "hostDisks", p.Spec.Variables[2].Name)
		p.Spec.Variables[2].Expression = "['/data/disks', '/srv', '/srv/disks']"
	})
	allowed := pod.Config{Launcher: pod.Launcher{Image: "podvisor/virt-launcher:v1", AllowEmulation: true}}
	allowed.Cluster.Limits.Features.HostDisk = true
	// A launcher that writes to a folder may make a link in it, which the kubelet follows on
	// the way to what is mounted.
	for path, ok := range map[string]bool{
		"/data/disks/a.img": true, "/srv/a.img": true,
		"/data/disks/team/a.img": false, "/data/disks/link/etc/kubernetes/a.img": false, "/srv/disks/a.img": false,
		"/data/other/a.img": false, "/data/disks-of-others/a.img": false, "/data/a.img": false,
	} {
		v := vmitest.New(vmitest.WithDisk("data", vmi.VolumeSource{HostDisk: &vmi.HostDisk{Path: path, Type: vmi.HostDiskExists}}))
		v.Namespace = s.name
		p, err := pod.Render(v, allowed)
		require.NoError(t, err)
		if err := ask(p); ok {
			require.NoError(t, err, path)
		} else {
			require.ErrorContains(t, err, "variable hostDisks", path)
		}
	}
}

// atOnce are the options of a deletion that takes effect at once.
var atOnce = metav1.DeleteOptions{GracePeriodSeconds: new(int64)}

func TestAttackTheTokenOfTheControllerDeletesNothingButPodsOfVMIs(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	kube, err := kubernetes.NewForConfig(withToken(t, world.config, home, "virt-controller"))
	require.NoError(t, err)
	theirs := kube.CoreV1().Pods(s.name)
	plain := launcherOf(t, s.name)
	plain.ObjectMeta = metav1.ObjectMeta{Name: "web"}
	_, err = s.pods.Create(t.Context(), plain, metav1.CreateOptions{})
	require.NoError(t, err)
	plain.Name = "virt-launcher-web"
	_, err = s.pods.Create(t.Context(), plain, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, name := range []string{"web", "virt-launcher-web"} {
		err = theirs.Delete(t.Context(), name, atOnce)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, "virt-controller may delete pods of VMIs only")
	}
	require.True(t, apierrors.IsForbidden(theirs.DeleteCollection(t.Context(), atOnce, metav1.ListOptions{})))

	rendered, err := pod.Render(s.create(guest("vm")), build(""))
	require.NoError(t, err)
	p, err := theirs.Create(t.Context(), rendered, metav1.CreateOptions{})
	require.NoError(t, err)
	web, err := s.pods.Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	err = s.evictAs(kube, web)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "virt-controller may evict pods of VMIs only")
	require.NoError(t, s.evictAs(kube, p))
	err = theirs.Delete(t.Context(), p.Name, atOnce) // where the eviction leaves it its grace period
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	p, err = theirs.Create(t.Context(), rendered, metav1.CreateOptions{})
	require.NoError(t, err)
	p.OwnerReferences = nil // as after a deletion that orphans
	_, err = s.pods.Update(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, theirs.Delete(t.Context(), p.Name, atOnce), "a launcher pod that was orphaned must not run on")
}

// A service mesh adds a container to every pod, which the administrator permits by its
// image; the launcher's Secrets are not its.
func TestAContainerThatAdmissionAddsIsPermittedByItsImage(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	ask := newSweeper(t, s.name, func(p *admissionv1.ValidatingAdmissionPolicy) {
		require.Equal(t, "sidecars", p.Spec.Variables[1].Name)
		p.Spec.Variables[1].Expression = "['registry.example:5000/mesh/proxy']"
		require.Equal(t, "audiences", p.Spec.Variables[3].Name)
		p.Spec.Variables[3].Expression = "['mesh']"
		require.Equal(t, "configMapsBeside", p.Spec.Variables[4].Name)
		p.Spec.Variables[4].Expression = "['mesh-ca']"
	})
	rendered := launcherOf(t, s.name, vmitest.WithContainerDisk("root", "example/fedora:40"),
		vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: &corev1.LocalObjectReference{Name: "s"}}}))
	rendered.Spec.Volumes = append(rendered.Spec.Volumes,
		corev1.Volume{Name: "mesh", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		corev1.Volume{Name: "ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mesh-ca"}}}},
		corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "mesh", Path: "t"}}}}}})
	proxy := corev1.Container{
		Name: "proxy", Image: "registry.example:5000/mesh/proxy:v1", Args: []string{"run"}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
		VolumeMounts:    []corev1.VolumeMount{{Name: "mesh", MountPath: "/mesh"}, {Name: "ca", MountPath: "/ca"}, {Name: "token", MountPath: "/token"}},
		SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(1337)), AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
	with := func(change func(p *corev1.Pod, c *corev1.Container)) *corev1.Pod {
		p, c := rendered.DeepCopy(), proxy.DeepCopy()
		change(p, c)
		p.Spec.Containers = append([]corev1.Container{*c}, p.Spec.Containers...)
		return p
	}
	require.NoError(t, ask(with(func(*corev1.Pod, *corev1.Container) {})))
	initial := with(func(*corev1.Pod, *corev1.Container) {})
	initial.Spec.InitContainers = []corev1.Container{proxy}
	require.NoError(t, ask(initial))
	for name, change := range map[string]func(p *corev1.Pod, c *corev1.Container){
		"of another image":   func(_ *corev1.Pod, c *corev1.Container) { c.Image = "registry.example:5000/mesh/proxy-thief" },
		"of root":            func(_ *corev1.Pod, c *corev1.Container) { c.SecurityContext.RunAsUser = new(int64) },
		"that is privileged": func(_ *corev1.Pod, c *corev1.Container) { c.SecurityContext.Privileged = new(true) },
		"with a capability": func(_ *corev1.Pod, c *corev1.Container) {
			c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
		},
		"with unconfined calls": func(_ *corev1.Pod, c *corev1.Container) {
			c.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: "Unconfined"}
		},
		"with the launcher's Secret":  func(_ *corev1.Pod, c *corev1.Container) { c.VolumeMounts[0].Name = "seed" },
		"with the launcher's sockets": func(_ *corev1.Pod, c *corev1.Container) { c.VolumeMounts[0].Name = "sockets" },
		"with a Secret's values": func(_ *corev1.Pod, c *corev1.Container) {
			c.Env[0].ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}
		},
		"with a Secret of its own": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[6].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{}}}}}
		},
		"with a token for the API server": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[len(p.Spec.Volumes)-1].Projected.Sources[0].ServiceAccountToken.Audience = ""
		},
		"with a token for the API server, by its name": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[len(p.Spec.Volumes)-1].Projected.Sources[0].ServiceAccountToken.Audience = "https://kubernetes.default.svc"
		},
		"with another ConfigMap": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[len(p.Spec.Volumes)-2].ConfigMap.Name = "other"
		},
		"with another ConfigMap beside a token": func(p *corev1.Pod, _ *corev1.Container) {
			at := &p.Spec.Volumes[len(p.Spec.Volumes)-1].Projected.Sources
			*at = append(*at, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "other"}}})
		},
		"with a path of the node": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[6].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		},
		"whose volume the launcher mounts": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "mesh", MountPath: "/usr/bin"})
		},
	} {
		err := ask(with(change))
		require.True(t, apierrors.IsForbidden(err), "a container %s: %v", name, err)
		require.ErrorContains(t, err, "virt-controller may", "a container %s", name)
	}
}
