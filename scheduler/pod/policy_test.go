package pod_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	clusterconfig "github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// policyFile admits the pods that virt-controller may make.
const policyFile = "../../manifests/policies/virt-controller.yaml"

// policy is what of the policy depends on the kinds of volumes: a new kind is refused
// unless it is there.
type policy struct {
	sources []string            // the sources that a volume of the pod may have
	fields  map[string][]string // what a source may say, by the source
	classes map[string]string   // the names of the lists of volumes, by the source
	mounts  map[string][]string // where a volume may be mounted, by the list: regular expressions
}

var (
	sourcesRule = regexp.MustCompile(`v\.all\(k, k in \["name", ([^]]*)\]\) &&\s+v\.\?image`)
	fieldsRule  = regexp.MustCompile(`v\.\?(\w+)\.orValue\(\{\}\)\.all\(k, k in \[([^]]*)\]\)`)
	classRule   = regexp.MustCompile(`- name: (\w+)\s+expression: variables\.volumes\.filter\(v, has\(v\.(\w+)\)\)`)
	mountRule   = regexp.MustCompile(`(m\.name in variables\.\w+[^\n]*?) && m\.mountPath\.matches\("([^"]+)"\)`)
	classesRule = regexp.MustCompile(`m\.name in variables\.(\w+)`)
)

func readPolicy(t *testing.T) policy {
	t.Helper()
	text, err := os.ReadFile(policyFile)
	require.NoError(t, err)
	p := policy{fields: map[string][]string{}, classes: map[string]string{"projected": "tokens"}, mounts: map[string][]string{}}
	p.sources = words(sourcesRule.FindStringSubmatch(string(text))[1])
	for _, m := range fieldsRule.FindAllStringSubmatch(string(text), -1) {
		p.fields[m[1]] = words(m[2])
	}
	for _, m := range classRule.FindAllStringSubmatch(string(text), -1) {
		p.classes[m[2]] = m[1]
	}
	for _, m := range mountRule.FindAllStringSubmatch(string(text), -1) {
		for _, c := range classesRule.FindAllStringSubmatch(m[1], -1) {
			p.mounts[c[1]] = append(p.mounts[c[1]], m[2])
		}
	}
	require.NotEmpty(t, p.sources)
	require.NotEmpty(t, p.mounts["secrets"])
	return p
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == '"' || r == ',' || r == ' ' || r == '\n' })
}

// object is a value as JSON has it.
func object(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	var o map[string]any
	require.NoError(t, json.Unmarshal(b, &o))
	return o
}

// sourceOf is a source of each kind, which only its own pod half reads.
var sourceOf = map[string]vmi.VolumeSource{
	"containerDisk":         {ContainerDisk: &vmi.ContainerDisk{Image: "image"}},
	"persistentVolumeClaim": {PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
	"dataVolume":            {DataVolume: &vmi.DataVolumeVolume{Name: "c"}},
	"cloudInitNoCloud": {CloudInitNoCloud: &vmi.CloudInitNoCloud{
		UserDataSecretRef: &corev1.LocalObjectReference{Name: "u"}, NetworkDataSecretRef: &corev1.LocalObjectReference{Name: "n"},
	}},
	"cloudInitConfigDrive": {CloudInitConfigDrive: &vmi.CloudInitConfigDrive{UserDataSecretRef: &corev1.LocalObjectReference{Name: "u"}}},
	"emptyDisk":            {EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("1Gi")}},
	"ephemeral":            {Ephemeral: &vmi.EphemeralVolume{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
	"hostDisk":             {HostDisk: &vmi.HostDisk{Path: "/data/disk.img", Type: vmi.HostDiskExists}},
	"configMap":            {ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}},
	"secret":               {Secret: &vmi.SecretVolume{SecretName: "s"}},
	"downwardAPI":          {DownwardAPI: &vmi.DownwardAPIVolume{}},
	"serviceAccount":       {ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "a"}},
	"sysprep":              {Sysprep: &vmi.Sysprep{Secret: &corev1.LocalObjectReference{Name: "s"}}},
}

func TestThePolicyAdmitsThePodsOfEveryKindOfVolume(t *testing.T) {
	t.Parallel()
	admits := readPolicy(t)
	own := plain(t, vmi.VolumeSource{})
	for _, k := range volume.Kinds() {
		source, ok := sourceOf[k.Name]
		require.True(t, ok, "write a source of the kind %s for this test", k.Name)
		p := plain(t, source)
		class := map[string]string{} // of the volumes, by their names
		for _, v := range p.Spec.Volumes {
			if slices.ContainsFunc(own.Spec.Volumes, func(o corev1.Volume) bool { return o.Name == v.Name }) {
				continue
			}
			for kind, says := range object(t, v) {
				if kind == "name" {
					continue
				}
				require.Contains(t, admits.sources, kind, "%s, kind %s: the rule of volumes refuses the source", policyFile, k.Name)
				if all := admits.fields[kind]; all != nil {
					for field := range says.(map[string]any) {
						require.Contains(t, all, field, "%s, kind %s: the rule of volumes refuses a field of %s", policyFile, k.Name, kind)
					}
				}
				class[v.Name] = admits.classes[kind]
			}
		}
		for _, m := range p.Spec.Containers[0].VolumeMounts {
			if c, ok := class[m.Name]; ok {
				require.True(t, slices.ContainsFunc(admits.mounts[c], func(e string) bool { return regexp.MustCompile(e).MatchString(m.MountPath) }),
					"%s, kind %s: the rule of mounts refuses %s for the volumes of variables.%s", policyFile, k.Name, m.MountPath, c)
			}
		}
	}
}

// plain is the pod of a VMI with a volume of the source, if it is one.
func plain(t *testing.T, s vmi.VolumeSource) *corev1.Pod {
	t.Helper()
	v := vmitest.New(vmitest.WithMemory("512Mi"))
	if !reflect.ValueOf(s).IsZero() {
		v = vmitest.New(vmitest.WithMemory("512Mi"), vmitest.WithDisk("data", s))
	}
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "podvisor/virt-launcher"}, Cluster: clusterconfig.Config{Limits: validate.Limits{Features: validate.Features{HostDisk: true}}}})
	require.NoError(t, err)
	return p
}
