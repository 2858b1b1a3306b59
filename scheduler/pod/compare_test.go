package pod_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// asJSON is the pod as a review has it.
func asJSON(t *testing.T, p *corev1.Pod) any {
	t.Helper()
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

// watched is the launcher of a VMI with a disk, a Secret, a label, an annotation and a probe.
func watched(t *testing.T) *corev1.Pod {
	t.Helper()
	v := vmitest.New(vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithMasquerade("default", vmi.Port{Port: 80}), vmitest.WithLabel("app", "db"),
		vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: &corev1.LocalObjectReference{Name: "s"}}}))
	v.Annotations = map[string]string{"note": "a"}
	v.Spec.NodeSelector = map[string]string{"zone": "a"}
	v.Spec.ReadinessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	v.Spec.LivenessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}}
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:1", AllowEmulation: true, Build: "b"}})
	require.NoError(t, err)
	return p
}

func TestEveryRenderedPodIsItself(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		var p corev1.Pod
		require.NoError(t, yaml.UnmarshalStrict(text, &p))
		other, err := pod.Differences(&p, asJSON(t, &p), pod.Admitted{})
		require.NoError(t, err)
		require.Empty(t, other, f)
	}
}

// sidecar is a container that a service mesh adds, with its volumes.
func sidecar(change ...func(*corev1.Pod, *corev1.Container)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.Container{
			Name: "proxy", Image: "example/proxy", Command: []string{"proxy"}, VolumeMounts: []corev1.VolumeMount{{Name: "mesh"}, {Name: "ca"}, {Name: "token"}},
			Env:       []corev1.EnvVar{{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "mesh", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			corev1.Volume{Name: "ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}}}},
			corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "mesh", Path: "t"}}}}}})
		for _, f := range change {
			f(p, &c)
		}
		p.Spec.Containers = append([]corev1.Container{c}, p.Spec.Containers...)
	}
}

func TestWhatTheAdmissionOfAClusterSetsIsNoDifference(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Pod){
		"nothing": func(*corev1.Pod) {},
		"what the API server completes": func(p *corev1.Pod) {
			p.UID, p.CreationTimestamp, p.ManagedFields = "u", metav1.Now(), []metav1.ManagedFieldsEntry{{Manager: "m"}}
			s := &p.Spec
			s.DNSPolicy, s.SchedulerName = corev1.DNSClusterFirst, "default-scheduler"
			s.ServiceAccountName, s.DeprecatedServiceAccount = "default", "default"
			c := &s.Containers[0]
			c.TerminationMessagePath, c.Ports[0].Protocol = "/dev/termination-log", corev1.ProtocolTCP
			c.ReadinessProbe.PeriodSeconds, c.ReadinessProbe.SuccessThreshold, c.ReadinessProbe.FailureThreshold = 10, 1, 3
			c.LivenessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Scheme, c.LivenessProbe.TimeoutSeconds = "/", corev1.URISchemeHTTP, 1
			for i := range s.Volumes {
				if v := s.Volumes[i].Secret; v != nil {
					v.DefaultMode = new(int32(0o644))
				}
			}
		},
		"tolerations of every pod": func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "a"}) },
		"the class of pods that name none": func(p *corev1.Pod) {
			p.Spec.PriorityClassName, p.Spec.Priority, p.Spec.PreemptionPolicy = "usual", new(int32(7)), new(corev1.PreemptLowerPriority)
		},
		"limits of LimitRanger": func(p *corev1.Pod) {
			p.Annotations["kubernetes.io/limit-ranger"] = "LimitRanger plugin set: cpu limit for container compute"
			p.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
		},
		"the same amount in another form": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("0.1")
		},
		"always pull":                    func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways },
		"pull secrets of the account":    func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "x"}} },
		"labels of the namespace's node": func(p *corev1.Pod) { p.Spec.NodeSelector["team"] = "a" },
		"a finalizer and gates": func(p *corev1.Pod) {
			p.Finalizers, p.Spec.SchedulingGates = []string{"a/b"}, []corev1.PodSchedulingGate{{Name: "a/b"}}
			p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: "a/b"})
		},
		"a field that the administrator names":     func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("gvisor") },
		"an annotation that the administrator's *": func(p *corev1.Pod) { p.Annotations["mesh.example/a"] = "b" },
		"a sidecar": sidecar(),
	} {
		p := watched(t)
		change(p)
		other, err := pod.Differences(watched(t), asJSON(t, p), pod.Admitted{PriorityClass: p.Spec.PriorityClassName, Fields: []string{"spec.runtimeClassName", "metadata.annotations[mesh.example/*"}})
		require.NoError(t, err)
		require.Empty(t, other, name)
	}
}

// What a thief of virt-controller's token would change in a launcher.
func TestAttackAPodThatIsNotTheLaunchersDiffers(t *testing.T) {
	t.Parallel()
	compute := func(f func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { f(&p.Spec.Containers[0]) }
	}
	volume := func(v corev1.Volume) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, v) }
	}
	seed := func(p *corev1.Pod) *corev1.Volume {
		for i := range p.Spec.Volumes {
			if p.Spec.Volumes[i].Secret != nil {
				return &p.Spec.Volumes[i]
			}
		}
		return nil
	}
	beside := func(f func(*corev1.Container)) func(*corev1.Pod) {
		return sidecar(func(_ *corev1.Pod, c *corev1.Container) { f(c) })
	}
	const c, added, volumes = "spec.containers[compute]", "spec.containers[proxy]", "spec.volumes"
	seeds := seed(watched(t)).Name
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		field  string
	}{
		"another Secret":              {func(p *corev1.Pod) { seed(p).Secret.SecretName = "other" }, volumes + "[" + seeds + "].secret.secretName"},
		"one key of the Secret":       {func(p *corev1.Pod) { seed(p).Secret.Items = []corev1.KeyToPath{{Key: "a", Path: "b"}} }, volumes + "[" + seeds + "].secret.items"},
		"another image of a disk":     {func(p *corev1.Pod) { p.Spec.Volumes[4].Image.Reference = "example/thief" }, volumes + "[root].image.reference"},
		"a Secret more":               {volume(corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x"}}}), volumes + "[x].secret"},
		"a claim more":                {volume(corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"}}}), volumes + "[x].persistentVolumeClaim"},
		"a folder of the node":        {volume(corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}), volumes + "[x].hostPath"},
		"a ConfigMap that none reads": {volume(corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}), volumes + "[x]"},
		"the volume of copied disks":  {volume(corev1.Volume{Name: "container-disks", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}), volumes + "[container-disks]"},
		"a volume less":               {func(p *corev1.Pod) { p.Spec.Volumes = p.Spec.Volumes[:len(p.Spec.Volumes)-1] }, volumes + "[" + seeds + "]"},
		"a label of a Service":        {func(p *corev1.Pod) { p.Labels["app"] = "web" }, "metadata.labels[app]"},
		"one label more":              {func(p *corev1.Pod) { p.Labels["run"] = "" }, "metadata.labels[run]"},
		"one label less":              {func(p *corev1.Pod) { delete(p.Labels, "app") }, "metadata.labels[app]"},
		"a network of Multus":         {func(p *corev1.Pod) { p.Annotations["k8s.v1.cni.cncf.io/networks"] = "a" }, "metadata.annotations[k8s.v1.cni.cncf.io/networks]"},
		"a default network":           {func(p *corev1.Pod) { p.Annotations["v1.multus-cni.io/default-network"] = "a" }, "metadata.annotations[v1.multus-cni.io/default-network]"},
		"a device of CDI":             {func(p *corev1.Pod) { p.Annotations["cdi.k8s.io/x"] = "a/b=c" }, "metadata.annotations[cdi.k8s.io/x]"},
		"an annotation less":          {func(p *corev1.Pod) { delete(p.Annotations, "note") }, "metadata.annotations[note]"},
		"another owner":               {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "x" }, "metadata.ownerReferences[0].uid"},
		"another name":                {func(p *corev1.Pod) { p.Name = "virt-launcher-x-00000" }, "metadata.name"},
		"a class of the system":       {func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }, "spec.priorityClassName"},
		"another account":             {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "admin" }, "spec.serviceAccountName"},
		"another account, as of old":  {func(p *corev1.Pod) { p.Spec.DeprecatedServiceAccount = "admin" }, "spec.serviceAccount"},
		"the network of the node":     {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, "spec.hostNetwork"},
		"a node":                      {func(p *corev1.Pod) { p.Spec.NodeName = "n1" }, "spec.nodeName"},
		"a node without the label":    {func(p *corev1.Pod) { delete(p.Spec.NodeSelector, vmi.SchedulableLabel) }, "spec.nodeSelector[" + vmi.SchedulableLabel + "]"},
		"no other pod beside it": {func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
		}, "spec.affinity"},
		"names of the thief":      {func(p *corev1.Pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}} }, "spec.dnsConfig"},
		"root":                    {func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = new(int64) }, "spec.securityContext.runAsUser"},
		"a longer end":            {func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(1 << 40)) }, "spec.terminationGracePeriodSeconds"},
		"no gate":                 {func(p *corev1.Pod) { p.Spec.ReadinessGates = nil }, "spec.readinessGates[0]"},
		"another word of a probe": {compute(func(k *corev1.Container) { h := k.ReadinessProbe.Exec; h.Command[len(h.Command)-1] = "reboot" }), c + ".readinessProbe.exec.command[10]"},
		"one word more":           {compute(func(k *corev1.Container) { h := k.ReadinessProbe.Exec; h.Command = append(h.Command, "x") }), c + ".readinessProbe.exec.command"},
		"another host of a probe": {compute(func(k *corev1.Container) { k.LivenessProbe.HTTPGet.Host = "192.0.2.1" }), c + ".livenessProbe.httpGet.host"},
		"a probe more":            {compute(func(k *corev1.Container) { k.StartupProbe = k.LivenessProbe }), c + ".startupProbe"},
		"another image":           {compute(func(k *corev1.Container) { k.Image += "x" }), c + ".image"},
		"another argument":        {compute(func(k *corev1.Container) { k.Args[5] = "x" }), c + ".args[5]"},
		"another command":         {compute(func(k *corev1.Container) { k.Command = []string{"sh"} }), c + ".command[0]"},
		"a variable":              {compute(func(k *corev1.Container) { k.Env = []corev1.EnvVar{{Name: "LD_PRELOAD"}} }), c + ".env"},
		"a mount elsewhere":       {compute(func(k *corev1.Container) { k.VolumeMounts[0].MountPath = "/usr/bin" }), c + ".volumeMounts[0].mountPath"},
		"a capability":            {compute(func(k *corev1.Container) { k.SecurityContext.Capabilities.Add = nil }), c + ".securityContext.capabilities.add"},
		"a device":                {compute(func(k *corev1.Container) { k.Resources.Limits["example.com/gpu"] = resource.MustParse("1") }), c + ".resources.limits[example.com/gpu]"},
		"more memory":             {compute(func(k *corev1.Container) { k.Resources.Requests["memory"] = resource.MustParse("1Ti") }), c + ".resources.requests[memory]"},
		"no container":            {func(p *corev1.Pod) { p.Spec.Containers = nil }, c},
		"an init container of the launcher's": {func(p *corev1.Pod) {
			k := p.Spec.Containers[0]
			k.Name = "x"
			p.Spec.InitContainers = []corev1.Container{k}
		}, "spec.initContainers[x].volumeMounts[0]"},
		"a sidecar with the launcher's Secret": {beside(func(k *corev1.Container) { k.VolumeMounts[0].Name = seeds }), added + ".volumeMounts[0]"},
		"a sidecar with a Secret's values": {beside(func(k *corev1.Container) {
			k.Env[0].ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}
		}), added + ".env[0].valueFrom.secretKeyRef"},
		"a sidecar with all of a Secret":  {beside(func(k *corev1.Container) { k.EnvFrom = []corev1.EnvFromSource{{}} }), added + ".envFrom"},
		"a sidecar with a claim's device": {beside(func(k *corev1.Container) { k.VolumeDevices = []corev1.VolumeDevice{{Name: "x"}} }), added + ".volumeDevices"},
		"a sidecar with a device": {beside(func(k *corev1.Container) {
			k.Resources.Limits = corev1.ResourceList{"devices.kubevirt.io/kvm": resource.MustParse("1")}
		}), added + ".resources.limits[devices.kubevirt.io/kvm]"},
		"a sidecar that has others asked": {beside(func(k *corev1.Container) {
			k.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "192.0.2.1"}}}
		}), added + ".readinessProbe.tcpSocket.host"},
		"a sidecar that has others asked at its end": {beside(func(k *corev1.Container) {
			k.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: "192.0.2.1"}}}
		}), added + ".lifecycle.preStop.httpGet.host"},
		"a token of the account": {sidecar(func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[len(p.Spec.Volumes)-1].Projected.Sources[0].ServiceAccountToken.Audience = ""
		}), volumes + "[token].projected.sources[0].serviceAccountToken"},
		"a sidecar with a Secret of its own": {sidecar(func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[len(p.Spec.Volumes)-1].Projected.Sources[0] = corev1.VolumeProjection{Secret: &corev1.SecretProjection{}}
		}), volumes + "[token].projected.sources[0].secret"},
	} {
		p := watched(t)
		tt.change(p)
		other, err := pod.Differences(watched(t), asJSON(t, p), pod.Admitted{})
		require.NoError(t, err)
		require.Contains(t, other, tt.field, name)
	}
	made := asJSON(t, watched(t))
	made.(map[string]any)["spec"].(map[string]any)["fieldOfALaterKubernetes"] = true
	other, err := pod.Differences(watched(t), made, pod.Admitted{})
	require.NoError(t, err)
	require.Equal(t, []string{"spec.fieldOfALaterKubernetes"}, other)
}

func TestTheBuildOfAPodIsThatOfItsRenderer(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	v.Annotations = map[string]string{"podvisor.io/build": "forged"}
	for _, build := range []string{"", "b"} {
		p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:1", Build: build}})
		require.NoError(t, err)
		require.Equal(t, build, launched.Build(p))
	}
}
