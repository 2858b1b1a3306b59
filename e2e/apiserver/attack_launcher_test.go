package apiserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// victim gives a VMI a Secret of each kind, a ConfigMap, a claim, the token of an account,
// a label and a probe.
func victim(v *vmi.VirtualMachineInstance) {
	secret := corev1.LocalObjectReference{Name: "s"}
	for _, f := range []vmitest.Option{
		vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: &secret}}),
		vmitest.WithDisk("keys", vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "s"}}),
		vmitest.WithDisk("answers", vmi.VolumeSource{Sysprep: &vmi.Sysprep{Secret: &secret}}),
		vmitest.WithDisk("config", vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: secret}}),
		vmitest.WithDisk("token", vmi.VolumeSource{ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "robot"}}),
		vmitest.WithClaim("data", "data"),
		vmitest.WithLabel("app", "db"),
	} {
		f(v)
	}
	v.Spec.AccessCredentials = []vmi.AccessCredential{{UserPassword: &vmi.UserPasswordCredential{
		Source: vmi.UserPasswordSource{Secret: &vmi.CredentialSecret{SecretName: "s"}}, PropagationMethod: vmi.UserPasswordPropagationMethod{QemuGuestAgent: &vmi.AgentPropagation{}},
	}}}
	v.Spec.ReadinessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
}

// The thief copies the launcher of a VMI and changes one thing, which the policies alone
// permit.
func TestAttackTheTokenOfTheControllerMakesNoPodThatItsVMIDoesNotAskFor(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.account("robot")
	s.account("admin")
	class, err := world.kube.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "high-"}, Value: 1000}, metav1.CreateOptions{})
	require.NoError(t, err)
	v := guest("vm")
	victim(v)
	v = s.create(v)
	kube, err := kubernetes.NewForConfig(withToken(t, world.config, home, "virt-controller"))
	require.NoError(t, err)
	asked, err := pod.Render(v, build(""))
	require.NoError(t, err)
	create := func(p *corev1.Pod) error {
		_, err := kube.CoreV1().Pods(s.name).Create(t.Context(), p, dryRun)
		return err
	}
	require.NoError(t, create(asked.DeepCopy()), "what the VMI asks for is permitted")
	source := func(p *corev1.Pod, name string) *corev1.VolumeSource {
		for i := range p.Spec.Volumes {
			if p.Spec.Volumes[i].Name == name {
				return &p.Spec.Volumes[i].VolumeSource
			}
		}
		return nil
	}
	attacks := map[string]func(*corev1.Pod){
		"with another ConfigMap":          func(p *corev1.Pod) { source(p, "config").ConfigMap.Name = "other" },
		"with another claim":              func(p *corev1.Pod) { source(p, "data").PersistentVolumeClaim.ClaimName = "other" },
		"with another image of its disk":  func(p *corev1.Pod) { source(p, "root").Image.Reference = "example/thief" },
		"of another account":              func(p *corev1.Pod) { p.Spec.ServiceAccountName = "admin" },
		"that ends pods of the system":    func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" },
		"that ends pods of others":        func(p *corev1.Pod) { p.Spec.PriorityClassName = class.Name },
		"with another label of a Service": func(p *corev1.Pod) { p.Labels["app"] = "web" },
		"with one more label":             func(p *corev1.Pod) { p.Labels["role"] = "web" },
		"on another default network":      func(p *corev1.Pod) { p.Annotations["v1.multus-cni.io/default-network"] = "thief/lan" },
		"on one more network":             func(p *corev1.Pod) { p.Annotations["k8s.v1.cni.cncf.io/networks"] = "thief/lan" },
		"with an address of its choice":   func(p *corev1.Pod) { p.Annotations["cni.projectcalico.org/ipAddrs"] = `["10.0.0.7"]` },
		"with names of the thief":         func(p *corev1.Pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}} },
		"with a command for the guest": func(p *corev1.Pod) {
			c := p.Spec.Containers[0].ReadinessProbe.Exec
			c.Command[len(c.Command)-1] = "reboot"
		},
		"with one more word for the guest": func(p *corev1.Pod) {
			c := p.Spec.Containers[0].ReadinessProbe.Exec
			c.Command = append(c.Command, "x")
		},
		"with a probe that ends it": func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(22)}}}
		},
		"that keeps others away": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{},
			}}}}
		},
		"with one more claim": func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}})
		},
		"that no VMI asks for": func(p *corev1.Pod) { *p = *launcherOf(t, s.name) },
		"with an init container of the launcher's": func(p *corev1.Pod) {
			copied, err := pod.Render(v, build("init-copy"))
			require.NoError(t, err)
			p.Spec.InitContainers = copied.Spec.InitContainers[:1]
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "launcher-bin", VolumeSource: *source(copied, "launcher-bin")})
		},
	}
	secrets := 0
	for _, of := range asked.Spec.Volumes {
		if of.Secret != nil {
			secrets++
			attacks["with another Secret of "+of.Name] = func(p *corev1.Pod) { source(p, of.Name).Secret.SecretName = "other" }
		}
	}
	require.Equal(t, 4, secrets, "of cloud-init, of files, of answers and of a credential")
	for name, change := range attacks {
		p := asked.DeepCopy()
		change(p)
		err := create(p)
		require.True(t, apierrors.IsForbidden(err), "a pod %s: %v", name, err)
		require.ErrorContains(t, err, `"owned.virt-controller.kubevirt.io"`, "a pod %s: the policies permit it, and the webhook does not", name)
	}
}

// A handler connects to the pods that the status names.
func TestAttackTheTokenOfTheControllerNamesNoPodOfAnother(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v, other := s.start("vm"), s.start("other")
	web := launcherOf(t, s.name)
	web.ObjectMeta = metav1.ObjectMeta{Name: "web"}
	users, err := s.pods.Create(t.Context(), web, metav1.CreateOptions{})
	require.NoError(t, err)
	s.bind(users, "n1")
	c, err := client.New(withToken(t, world.config, home, "virt-controller"))
	require.NoError(t, err)
	write := func(change func(*vmi.VirtualMachineInstanceStatus)) error {
		v := s.latest(v)
		changed := v.DeepCopy()
		change(&changed.Status)
		_, err := client.WriteStatus(t.Context(), c.VirtualMachineInstances(s.name), v, changed)
		return err
	}
	type status = vmi.VirtualMachineInstanceStatus
	for name, change := range map[string]func(*status){
		"of another VMI":         func(st *status) { st.ActivePods = map[types.UID]string{s.pod(other).UID: "n1"} },
		"of another VMI, beside": func(st *status) { st.ActivePods[s.pod(other).UID] = "n1" },
		"of a migration's name": func(st *status) {
			st.ActivePods[s.pod(other).UID] = "n1"
			st.MigrationState = &vmi.MigrationState{TargetNode: "n1", TargetPod: s.pod(other).Name}
		},
		"of a user":         func(st *status) { st.ActivePods[users.UID] = "n1" },
		"that is not there": func(st *status) { st.ActivePods["gone"] = "n1" },
		"on another node":   func(st *status) { st.ActivePods[s.pod(v).UID] = "n2" },
	} {
		err := write(change)
		require.True(t, apierrors.IsForbidden(err), "a pod %s: %v", name, err)
		require.ErrorContains(t, err, "was not made for VirtualMachineInstance "+s.name+"/vm", "a pod %s", name)
	}
	require.NoError(t, write(func(st *status) { st.Reason = "Tested" }), "other writes are not asked about")
}
