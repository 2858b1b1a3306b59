package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// change is one change of a pod, and where it is made.
type change struct {
	path string
	pod  *corev1.Pod
}

// changes are pods that differ from p in one field each: every field of its types is
// set to another value, every list gets an element and loses one.
func changes(p *corev1.Pod) []change {
	var out []change
	var walk func(path string, at func(*corev1.Pod) reflect.Value)
	try := func(path string, at func(*corev1.Pod) reflect.Value, edit func(reflect.Value)) {
		c := p.DeepCopy()
		edit(at(c))
		out = append(out, change{path, c})
	}
	walk = func(path string, at func(*corev1.Pod) reflect.Value) {
		v := at(p)
		set := func(to reflect.Value) { try(path, at, func(v reflect.Value) { v.Set(to) }) }
		switch t := v.Type(); {
		case isScalar(t):
			set(another(v))
		case t.Kind() == reflect.Struct:
			for i := range t.NumField() {
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				walk(strings.TrimSuffix(path+"."+name, "."), func(p *corev1.Pod) reflect.Value { return at(p).Field(i) })
			}
		case t.Kind() == reflect.Pointer && v.IsNil():
			set(filled(t))
		case t.Kind() == reflect.Pointer:
			try(path+"(removed)", at, func(v reflect.Value) { v.SetZero() })
			walk(path, func(p *corev1.Pod) reflect.Value { return at(p).Elem() })
		case t.Kind() == reflect.Map:
			more := reflect.MakeMap(t)
			for _, k := range v.MapKeys() {
				more.SetMapIndex(k, v.MapIndex(k))
				try(path+"["+k.String()+"](removed)", at, func(v reflect.Value) { v.SetMapIndex(k, reflect.Value{}) })
				try(path+"["+k.String()+"]", at, func(v reflect.Value) { v.SetMapIndex(k, another(v.MapIndex(k))) })
			}
			for _, k := range filled(t).MapKeys() {
				more.SetMapIndex(k, filled(t.Elem()))
			}
			set(more)
		case t.Kind() == reflect.Slice:
			for i := range v.Len() {
				try(fmt.Sprintf("%s[%d](removed)", path, i), at, func(v reflect.Value) {
					v.Set(reflect.AppendSlice(v.Slice(0, i), v.Slice(i+1, v.Len())))
				})
				walk(fmt.Sprintf("%s[%d]", path, i), func(p *corev1.Pod) reflect.Value { return at(p).Index(i) })
			}
			for name, e := range elements(t.Elem()) {
				try(path+"[+]"+name, at, func(v reflect.Value) { v.Set(reflect.Append(v, e)) })
			}
		default:
			panic("no change of " + t.String() + " at " + path)
		}
	}
	walk("metadata", func(p *corev1.Pod) reflect.Value { return reflect.ValueOf(&p.ObjectMeta).Elem() })
	walk("spec", func(p *corev1.Pod) reflect.Value { return reflect.ValueOf(&p.Spec).Elem() })
	return out
}

// isScalar says that values of the type have no fields of their own.
func isScalar(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.FieldsV1]():
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8:
		return true
	}
	return false
}

// another is a value that differs from v.
func another(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(v.String() + "x")
	case reflect.Bool:
		out.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		out.SetInt(v.Int() + 1)
	default:
		return filled(v.Type())
	}
	return out
}

// filled is a value of the type in which all fields are set.
func filled(t reflect.Type) reflect.Value { return filledTo(t, 0) }

func filledTo(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return reflect.ValueOf(resource.MustParse("7"))
	case reflect.TypeFor[metav1.Time]():
		return reflect.ValueOf(metav1.NewTime(time.Unix(1, 0)))
	case reflect.TypeFor[intstr.IntOrString]():
		return reflect.ValueOf(intstr.FromInt32(7))
	case reflect.TypeFor[metav1.FieldsV1]():
		return reflect.ValueOf(metav1.FieldsV1{Raw: []byte("{}")})
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filledTo(t.Elem(), depth+1))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(filledTo(t.Key(), depth+1), filledTo(t.Elem(), depth+1))
	case reflect.Slice:
		if depth < 8 {
			v.Set(reflect.Append(v, filledTo(t.Elem(), depth+1)))
		}
	case reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(filledTo(t.Field(i).Type, depth+1))
		}
	default:
		panic("no value of " + t.String())
	}
	return v
}

// elements are elements of a list: one for each field that its type and those within
// have, with a name and this field set, so that what refuses one field does not hide
// that another is permitted.
func elements(t reflect.Type) map[string]reflect.Value {
	if t.Kind() != reflect.Struct || isScalar(t) {
		return map[string]reflect.Value{"": filled(t)}
	}
	out := map[string]reflect.Value{}
	for i := range t.NumField() {
		f := t.Field(i)
		inner := map[string]reflect.Value{"": filled(f.Type)}
		if f.Anonymous {
			inner = elements(f.Type)
		}
		for name, value := range inner {
			e := reflect.New(t).Elem()
			if n := e.FieldByName("Name"); n.IsValid() && n.Kind() == reflect.String {
				n.SetString("added")
			}
			e.Field(i).Set(value)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag != "" {
				tag = "." + tag
			}
			out[tag+name] = e
		}
	}
	return out
}

// passed are the fields of launcher pods that virt-controller may write as it likes,
// with the reason. The paths are regular expressions.
var passed = map[string]string{
	`metadata\.(uid|resourceVersion|generation|selfLink|creationTimestamp|deletionTimestamp|deletionGracePeriodSeconds|managedFields.*)`: "written by the API server",
	`metadata\.(generateName|finalizers.*)`:                                     "gives a pod nothing; others' admission adds finalizers",
	`metadata\.namespace`:                                                       "decided by the request, which has a rule of its own",
	`metadata\.(labels|annotations)(\[.*\](\(removed\))?)?`:                     "the VMI's; those that mean something to Podvisor are below",
	`spec\.(nodeSelector|affinity|tolerations|topologySpreadConstraints)\b.*`:   "the user's, in a VMI as in a pod",
	`spec\.(priorityClassName|schedulerName|terminationGracePeriodSeconds)\b.*`: "the user's, in a VMI as in a pod",
	`spec\.(hostname|subdomain|dnsPolicy|dnsConfig)\b.*`:                        "the user's, in a VMI as in a pod",
	`spec\.(priority|preemptionPolicy)\b.*`:                                     "completed by the API server from the priority class",
	`spec\.readinessGates.*`:                                                    "what the pod waits for before it is ready",
	`spec\.schedulingGates.*`:                                                   "added by others' admission; keeps a pod from a node",
	`spec\.imagePullSecrets.*`:                                                  "the user's; the kubelet gives them to the registries that they name only",
	`spec\.(initContainers|containers)\[\d\]\.(imagePullPolicy|resizePolicy.*|terminationMessagePolicy)`:           "gives a container nothing",
	`spec\.(initContainers|containers)\[\d\]\.resources(\.requests|\.limits)?\b.*`:                                 "the user's, in a VMI as in a pod; and LimitRanger's",
	`spec\.containers\[\d\]\.(stdin|tty)`:                                                                          "gives a container nothing",
	`spec\.containers\[\d\]\.ports.*`:                                                                              "the VMI's; what reaches the node is refused",
	`spec\.containers\[\d\]\.args\[7\]`:                                                                            "the VMI's grace period",
	`spec\.containers\[\d\]\.args\[8\]\(removed\)`:                                                                 "whether the guest is emulated",
	`spec\.containers\[\d\]\.image`:                                                                                "another tag",
	`spec\.initContainers\[\d\]\.(image|command\[[35]\])`:                                                          "the image and the path of a container disk, which runs the launcher's program",
	`spec\.volumes\[\d\]\.image\.(reference|pullPolicy)`:                                                           "the image of a container disk",
	`spec\.initContainers\[1\]\.name`:                                                                              "the name of a volume's container",
	`spec\.containers\[\d\]\.volumeMounts\[[0-3]\]\.readOnly`:                                                      "gives less",
	`spec\.containers\[\d\]\.volumeMounts\[4\]\.mountPath`:                                                         "the folder of another container disk",
	`spec\.volumes\[\+\]\.(image|name)`:                                                                            "a volume that is nowhere mounted",
	`spec\.volumes\[\d+\]\.secret\.(secretName|defaultMode|optional)(\(removed\))?`:                                "a Secret that the VMI names",
	`spec\.volumes\[\d+\]\.configMap\.(name|defaultMode|optional)(\(removed\))?`:                                   "a ConfigMap that the VMI names",
	`spec\.volumes\[\d+\]\.downwardAPI\.(items.*|defaultMode)(\(removed\))?`:                                       "facts of the pod itself",
	`spec\.volumes\[\d+\]\.projected\.defaultMode(\(removed\))?`:                                                   "gives less",
	`spec\.volumes\[\+\]\.persistentVolumeClaim`:                                                                   "a claim that is nowhere mounted",
	`spec\.volumes\[\+\]\.(configMap|downwardAPI).*`:                                                               "a volume that is nowhere mounted",
	`spec\.(serviceAccountName|serviceAccount)`:                                                                    "the account that the VMI names; its token is in the container compute alone",
	`spec\.volumes\[\d\]\.persistentVolumeClaim\.(claimName|readOnly)`:                                             "a claim that the VMI names",
	`spec\.containers\[\d\]\.volumeMounts\[7\]\.(mountPath|readOnly)`:                                              "the folder of another claim",
	`spec\.containers\[\d\]\.volumeMounts\[([89]|1\d)\]\.mountPath`:                                                "the folder of another volume of files",
	`spec\.containers\[\d\]\.volumeDevices\[0\]\.devicePath`:                                                       "the device of another claim",
	`spec\.(volumes|containers\[\d\]\.volume(Mounts|Devices)|initContainers|imagePullSecrets)\[\d+\](\(removed\))`: "fewer",
	`spec\.containers\[\d\]\.readinessProbe(\(removed\)|\.exec(\(removed\)|\.command\[([3-9]|\d\d|\+)\](\(removed\))?)|\.(initialDelay|timeout|period)Seconds|\.(success|failure)Threshold)`: "when and what the VMI's guest is asked",
}

// refusedAlways are paths that match an expression of passed and must be refused.
var refusedAlways = regexp.MustCompile(`labels\[kubevirt\.io(/created-by)?\]|annotations\[kubevirt\.io/domain\]|resources\.claims|ports\[\+\]\.host|finalizersx`)

// passing is the expression of passed that the path matches, or empty.
func passing(path string) string {
	if refusedAlways.MatchString(path) {
		return ""
	}
	for _, e := range slices.Sorted(maps.Keys(passed)) {
		if regexp.MustCompile("^(" + e + ")$").MatchString(path) {
			return e
		}
	}
	return ""
}

// sweepers make objects that have the fields of pods, for which a copy of the policy
// for pods is in force and no other rule.
var sweepers = schema.GroupVersionResource{Group: "sweep.podvisor.io", Version: "v1", Resource: "pods"}

// newSweeper returns a function that asks the copy of the policy about a pod.
func newSweeper(t *testing.T, namespace string, change ...func(*admissionv1.ValidatingAdmissionPolicy)) func(*corev1.Pod) error {
	t.Helper()
	crd := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: pods.sweep.podvisor.io},
spec: {group: sweep.podvisor.io, scope: Namespaced, names: {kind: Pod, plural: pods, singular: pod, listKind: PodList},
versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	said, err := kubectl(t, crd, "apply", "--server-side", "-f", "-")
	require.NoError(t, err, said)
	awaitEstablished(t, func() (string, error) { return kubectl(t, crd, "get", "-o", "json", "-f", "-") })
	registration := world.kube.AdmissionregistrationV1()
	policy, err := registration.ValidatingAdmissionPolicies().Get(t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
	require.NoError(t, err)
	name := "sweep." + namespace
	policy.ObjectMeta = metav1.ObjectMeta{Name: name}
	for _, f := range change {
		f(policy)
	}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}, ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{
			APIGroups: []string{sweepers.Group}, APIVersions: []string{"*"}, Resources: []string{"pods"},
		}},
	}}}
	_, err = registration.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = registration.ValidatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	_, err = registration.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = registration.ValidatingAdmissionPolicyBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	cfg := asController()
	cfg.Impersonate.Groups = []string{"system:masters"}
	c, err := dynamic.NewForConfig(cfg)
	require.NoError(t, err)
	ask := func(p *corev1.Pod) error {
		// By way of JSON, which has what the API server sees: an empty list is none.
		text, err := json.Marshal(p)
		require.NoError(t, err)
		o := map[string]any{}
		require.NoError(t, json.Unmarshal(text, &o))
		u := &unstructured.Unstructured{Object: o}
		u.Object = runtime.DeepCopyJSON(wholeNumbers(u.Object).(map[string]any))
		u.SetAPIVersion(sweepers.Group + "/v1")
		u.SetKind("Pod")
		u.SetNamespace(namespace)
		u.SetResourceVersion("")
		u.SetDeletionTimestamp(nil)
		u.SetManagedFields(nil)
		_, err = c.Resource(sweepers).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually(t, func() error {
		if err := ask(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x"}}}}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the copy of the policy is not in force: %w", err)
		}
		return nil
	})
	return ask
}

// wholeNumbers makes numbers integers, as in pods.
func wholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = wholeNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case float64:
		return int64(v)
	}
	return v
}

// swept is a pod as Render makes it, and as the API server completes it.
type swept struct{ rendered, completed *corev1.Pod }

// sweptPods are pods that have between them all that Render makes, by how they reach
// container disks.
func (s space) sweptPods() map[string]swept {
	s.t.Helper()
	secret := &corev1.LocalObjectReference{Name: "s"}
	v := vmitest.New(vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithMasquerade("default", vmi.Port{Name: "http", Port: 80}),
		vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: secret, NetworkDataSecretRef: secret}}),
		vmitest.WithClaim("data", "data"), vmitest.WithClaim("device", "device"),
		vmitest.WithDisk("config", vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: *secret, Optional: new(true)}}),
		vmitest.WithDisk("keys", vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "s", Optional: new(true)}}),
		vmitest.WithDisk("facts", vmi.VolumeSource{DownwardAPI: &vmi.DownwardAPIVolume{Fields: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		}}}),
		vmitest.WithDisk("token", vmi.VolumeSource{ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "robot"}}),
		vmitest.WithDisk("answers", vmi.VolumeSource{Sysprep: &vmi.Sysprep{Secret: secret}}))
	v.Namespace = s.name
	v.Spec.Volumes[0].ContainerDisk.ImagePullSecret, v.Spec.Volumes[0].ContainerDisk.Path = "registry", "/disk/a"
	v.Spec.ReadinessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	v.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
	s.account("robot")
	for _, name := range []string{"data", "device"} {
		mode := corev1.PersistentVolumeFilesystem
		if name == "device" {
			mode = corev1.PersistentVolumeBlock
		}
		_, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).Create(s.t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		}}, metav1.CreateOptions{})
		require.NoError(s.t, err)
	}
	made, err := world.vmis.VirtualMachineInstances(s.name).Create(s.t.Context(), v, metav1.CreateOptions{})
	require.NoError(s.t, err)
	v.UID = made.UID
	out := map[string]swept{}
	for way, build := range map[pod.ContainerDisks]pod.Config{pod.ImageVolume: build(""), pod.InitCopy: build("init-copy")} {
		build.Facts.Claims = block("device")
		p, err := pod.Render(v, build)
		require.NoError(s.t, err)
		completed, err := s.asController().Pods(s.name).Create(s.t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.NoError(s.t, err, "the webhook finds no difference in what the API server has completed")
		out[string(way)] = swept{p, completed}
	}
	return out
}

// block are claims in block mode.
func block(names ...string) map[string]*corev1.PersistentVolumeClaim {
	out := map[string]*corev1.PersistentVolumeClaim{}
	for _, n := range names {
		out[n] = &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: new(corev1.PersistentVolumeBlock)}}
	}
	return out
}

func TestAttackEveryOtherFieldOfALauncherPodIsRefused(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	ask := newSweeper(t, s.name)
	hit := map[string]bool{}
	tried := 0
	for way, p := range s.sweptPods() {
		require.NoError(t, ask(p.completed), "the pod itself, with %s", way)
		for _, c := range changes(p.completed) {
			if way == string(pod.InitCopy) && !strings.Contains(c.path, "init") && !strings.Contains(c.path, "olume") {
				continue // as in the other pod
			}
			tried++
			err, why := ask(c.pod), passing(c.path)
			if why != "" {
				hit[why] = true
				continue
			}
			switch {
			case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "virt-controller may"):
			case apierrors.IsInvalid(err) && strings.HasPrefix(c.path, "metadata."): // no object is such
			default:
				t.Errorf("%s: another %s is not refused by the policy: %v", way, c.path, err)
			}
		}
	}
	t.Logf("%d changes of launcher pods", tried)
	require.Greater(t, tried, 500)
	for e := range passed {
		if !hit[e] {
			t.Errorf("no field is at %s", e)
		}
	}
}

// equal are the fields of launcher pods that are no difference for the webhook, with the
// reason. The paths are regular expressions.
var equal = map[string]string{
	`metadata\.(uid|resourceVersion|generation|selfLink|creationTimestamp|deletionTimestamp|deletionGracePeriodSeconds|managedFields|finalizers).*`: "written by the API server, or keeps a pod that has ended",
	`spec\.(schedulerName|tolerations.*|schedulingGates.*)`:                                           "where and when it runs",
	`spec\.(nodeSelector|readinessGates\[\+\].*|imagePullSecrets\[\+\].*)`:                            "one more of these",
	`spec\.(priority|preemptionPolicy)(\(removed\))?`:                                                 "the API server's, from the class",
	`spec\.(initContainers|containers)\[\d\]\.(imagePullPolicy|resizePolicy.*)|.*\.image\.pullPolicy`: "gives a container nothing",
	`spec\.(initContainers|containers)\[\+\]\.(` + strings.Join(beside, "|") + `)`:                    "a container whose image a policy has to permit",
	`spec\.volumes\[\+\]\.(name|emptyDir|downwardAPI)`:                                                "a volume for such a container",
	`spec\.volumes\[\d+\]\.\w+\.defaultMode\(removed\)`:                                               "completed by the API server",
	`spec\.containers\[0\]\.resources\.requests\[devices\.kubevirt\.io/tun\]\(removed\)`:              "the API server asks for what is the limit",
}

// beside are the fields that a container beside the launcher's may have.
var beside = []string{"name", "image", "command", "args", "workingDir", "ports", "volumeMounts", "imagePullPolicy", "securityContext", "resizePolicy",
	"restartPolicy", "restartPolicyRules", "stdin", "stdinOnce", "tty", "terminationMessagePath", "terminationMessagePolicy"}

// The webhook compares a launcher with the one that follows from the stored VMI: each field
// that gives something must be as it was rendered.
func TestAttackEveryFieldOfALauncherPodIsComparedWithItsVMI(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	hit := map[string]bool{}
	for way, p := range s.sweptPods() {
		for _, c := range changes(p.completed) {
			text, err := json.Marshal(c.pod)
			require.NoError(t, err)
			var made any
			require.NoError(t, json.Unmarshal(text, &made))
			other, err := pod.Differences(p.rendered, made, pod.Admitted{})
			require.NoError(t, err)
			why := ""
			for e := range equal {
				if regexp.MustCompile("^(" + e + ")$").MatchString(c.path) {
					why = e
					hit[e] = true
				}
			}
			if why == "" && len(other) == 0 {
				t.Errorf("%s: another %s is no difference", way, c.path)
			}
		}
	}
	for e := range equal {
		if !hit[e] {
			t.Errorf("no field is at %s", e)
		}
	}
}
