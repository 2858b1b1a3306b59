package pod

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// Admitted is what the admission of a cluster may set in a launcher pod besides what it sets
// in every cluster.
type Admitted struct {
	// PriorityClass is the class of pods that name none. Empty: they have none.
	PriorityClass string
	// Fields are fields as [Differences] names them. One that ends with * stands for all
	// that begin so.
	Fields []string
}

// maxDifferences is how many fields are named.
const maxDifferences = 20

// Differences are the fields in which a pod, as the API server has it for admission, is
// not the pod that was rendered: as paths in the order of their names, without their
// values. Made is its JSON as it was decoded into an any: so a field that these types do
// not have is a difference too.
//
// What the API server completes is none, nor what its own admission adds to pods: the
// account "default" and pull secrets, the class of [Admitted], limits and requests of
// processors, memory and space that the pod does not have, labels of nodes, tolerations,
// and when images are pulled. The admission of others may add finalizers, gates, a
// scheduler, and containers that see nothing of the launcher: none of its volumes, no
// Secret, no claim, no device. Which images these have, a policy of the API server says.
func Differences(rendered *corev1.Pod, made any, a Admitted) ([]string, error) {
	raw, err := json.Marshal(rendered)
	if err != nil {
		return nil, err
	}
	var want any
	if err := json.Unmarshal(raw, &want); err != nil {
		return nil, err
	}
	c := comparison{admitted: a}
	w, g := object(want), object(made)
	c.metadata(object(w["metadata"]), object(g["metadata"]))
	c.spec(object(w["spec"]), object(g["spec"]))
	slices.Sort(c.found)
	return c.found[:min(len(c.found), maxDifferences)], nil
}

// comparison collects differences.
type comparison struct {
	admitted Admitted
	found    []string
}

// Sets says that the field with this path is one of Fields.
func (a Admitted) Sets(path string) bool {
	return slices.ContainsFunc(a.Fields, func(f string) bool {
		prefix, all := strings.CutSuffix(f, "*")
		return f == path || all && strings.HasPrefix(path, prefix)
	})
}

// differs notes the field, unless the cluster's admission may set it.
func (c *comparison) differs(path string) {
	if !c.admitted.Sets(path) {
		c.found = append(c.found, path)
	}
}

// Fields that may have any value, and why.
var (
	freeMetadata = set(
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", // the API server's
		"finalizers", // of others' admission: they keep a pod that has ended
	)
	freeAnnotations = set("kubernetes.io/limit-ranger") // what LimitRanger has added
	freeSpec        = set(
		"priority", "preemptionPolicy", // the API server's, from the class
		"schedulerName", "schedulingGates", "readinessGates", "nodeSelector", "tolerations", // where and when it runs
	)
	freeContainer = set("imagePullPolicy", "resizePolicy")
	// ample are resources of which every pod may ask any amount.
	ample = set("cpu", "memory", "ephemeral-storage")
)

// completed are the values that the API server gives to fields that are left out. The keys
// are the ends of paths.
var completed = []struct {
	end   *regexp.Regexp
	value any
}{
	{regexp.MustCompile(`^spec\.dnsPolicy$`), "ClusterFirst"},
	{regexp.MustCompile(`ontainers\[[^]]*\]\.terminationMessagePath$`), "/dev/termination-log"},
	{regexp.MustCompile(`ontainers\[[^]]*\]\.terminationMessagePolicy$`), "File"},
	{regexp.MustCompile(`\.ports\[\d+\]\.protocol$`), "TCP"},
	{regexp.MustCompile(`Probe\.timeoutSeconds$`), 1.0},
	{regexp.MustCompile(`Probe\.periodSeconds$`), 10.0},
	{regexp.MustCompile(`Probe\.successThreshold$`), 1.0},
	{regexp.MustCompile(`Probe\.failureThreshold$`), 3.0},
	{regexp.MustCompile(`Probe\.httpGet\.path$`), "/"},
	{regexp.MustCompile(`Probe\.httpGet\.scheme$`), "HTTP"},
	{regexp.MustCompile(`\.(secret|configMap|downwardAPI|projected)\.defaultMode$`), 420.0},
	{regexp.MustCompile(`\.fieldRef\.apiVersion$`), "v1"},
	{regexp.MustCompile(`\.resourceFieldRef\.divisor$`), "0"},
	{regexp.MustCompile(`\.serviceAccountToken\.expirationSeconds$`), 3600.0},
	{regexp.MustCompile(`\.hostPath\.type$`), ""},
}

func (c *comparison) metadata(want, got map[string]any) {
	special := set("labels", "annotations")
	maps.Copy(special, freeMetadata)
	c.fields("metadata", want, got, special)
	c.fields("metadata.labels", object(want["labels"]), object(got["labels"]), nil)
	c.fields("metadata.annotations", object(want["annotations"]), object(got["annotations"]), freeAnnotations)
}

func (c *comparison) spec(want, got map[string]any) {
	special := set("containers", "initContainers", "volumes", "imagePullSecrets", "priorityClassName", "serviceAccountName", "serviceAccount")
	maps.Copy(special, freeSpec)
	c.fields("spec", want, got, special)
	reserved := set(append(volume.Copies(), volume.StateVolume, vmi.FilesystemsVolume)...)
	for _, m := range ownMounts() {
		reserved[m.Name] = true
	}
	for k, v := range object(want["nodeSelector"]) {
		if object(got["nodeSelector"])[k] != v {
			c.differs("spec.nodeSelector[" + k + "]")
		}
	}
	for _, list := range []string{"readinessGates", "imagePullSecrets"} {
		c.has("spec."+list, array(want[list]), array(got[list]))
	}
	class := text(want["priorityClassName"])
	if class == "" {
		class = c.admitted.PriorityClass
	}
	if text(got["priorityClassName"]) != class {
		c.differs("spec.priorityClassName")
	}
	account := text(want["serviceAccountName"])
	for _, k := range []string{"serviceAccountName", "serviceAccount"} {
		is := text(got[k])
		completed := account == "" && is == "default" || k == "serviceAccount" && is == ""
		if is != account && !completed {
			c.differs("spec." + k)
		}
	}
	c.volumes(want, got, reserved)
	for _, list := range []string{"containers", "initContainers"} {
		c.containers("spec."+list, array(want[list]), array(got[list]), array(want["volumes"]))
	}
}

// has notes what is in the first list and not in the second.
func (c *comparison) has(path string, want, got []any) {
	for i, w := range want {
		if !slices.ContainsFunc(got, func(g any) bool { return reflect.DeepEqual(w, g) }) {
			c.differs(fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// containers compares those that were rendered, which must be there in their order. The
// others must see nothing of the launcher.
func (c *comparison) containers(path string, want, got, volumes []any) {
	next := 0
	for _, g := range got {
		name := text(object(g)["name"])
		at := path + "[" + name + "]"
		i := place(want, name)
		switch {
		case i < 0:
			c.added(at, object(g), volumes)
		case i != next:
			c.differs(at)
			next = max(next, i+1)
		default:
			next++
			c.container(at, object(want[i]), object(g))
		}
	}
	for _, w := range want {
		if name := text(object(w)["name"]); place(got, name) < 0 {
			c.differs(path + "[" + name + "]")
		}
	}
}

func (c *comparison) container(path string, want, got map[string]any) {
	special := set("resources")
	maps.Copy(special, freeContainer)
	c.fields(path, want, got, special)
	w, g := object(want["resources"]), object(got["resources"])
	c.fields(path+".resources", w, g, set("requests", "limits"))
	for _, kind := range []string{"requests", "limits"} {
		c.amounts(path+".resources."+kind, object(w[kind]), object(g[kind]), object(w["limits"]))
	}
}

// amounts compares amounts of resources. The API server asks for what is the limit, and
// its admission adds amounts of ample resources that the container does not have.
func (c *comparison) amounts(path string, want, got, limits map[string]any) {
	for _, k := range union(want, got) {
		w, is := want[k]
		g, has := got[k]
		if l, limited := limits[k]; !is && has && limited {
			w, is = l, true
		}
		if !is && ample[k] || is && has && sameAmount(w, g) {
			continue
		}
		c.differs(path + "[" + k + "]")
	}
}

func sameAmount(a, b any) bool {
	x, err := quantity.Parse(fmt.Sprint(a))
	y, err2 := quantity.Parse(fmt.Sprint(b))
	return err == nil && err2 == nil && x.Cmp(y) == 0
}

// added notes what a container that was not rendered has of the launcher or of the node.
func (c *comparison) added(path string, got map[string]any, volumes []any) {
	for i, m := range array(got["volumeMounts"]) {
		if place(volumes, text(object(m)["name"])) >= 0 {
			c.differs(fmt.Sprintf("%s.volumeMounts[%d]", path, i))
		}
	}
	for _, k := range []string{"volumeDevices", "envFrom"} {
		if got[k] != nil {
			c.differs(path + "." + k)
		}
	}
	for i, e := range array(got["env"]) {
		for k := range object(object(e)["valueFrom"]) {
			if k != "fieldRef" && k != "resourceFieldRef" {
				c.differs(fmt.Sprintf("%s.env[%d].valueFrom.%s", path, i, k))
			}
		}
	}
	r := object(got["resources"])
	for _, kind := range []string{"requests", "limits"} {
		for k := range object(r[kind]) {
			if !ample[k] {
				c.differs(path + ".resources." + kind + "[" + k + "]")
			}
		}
	}
	if r["claims"] != nil {
		c.differs(path + ".resources.claims")
	}
	// With a host the kubelet connects to any address from its node.
	for _, k := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		c.hosts(path+"."+k, object(got[k]))
	}
	for _, k := range []string{"postStart", "preStop"} {
		c.hosts(path+".lifecycle."+k, object(object(got["lifecycle"])[k]))
	}
}

func (c *comparison) hosts(path string, handler map[string]any) {
	for _, k := range []string{"httpGet", "tcpSocket"} {
		if text(object(handler[k])["host"]) != "" {
			c.differs(path + "." + k + ".host")
		}
	}
}

// The kinds of volumes that others' admission may add, and what may be projected in them.
var (
	addedVolumes = set("emptyDir", "downwardAPI", "configMap", "projected")
	addedSources = set("downwardAPI", "configMap", "clusterTrustBundle", "serviceAccountToken")
)

// volumes compares those that were rendered. Of the others those with files of the
// namespace are for containers that were added: which files these may be, a policy says
// of the volumes that they mount.
func (c *comparison) volumes(want, got map[string]any, reserved map[string]bool) {
	rendered := array(want["volumes"])
	for _, g := range array(got["volumes"]) {
		v := object(g)
		name := text(v["name"])
		at := "spec.volumes[" + name + "]"
		i := place(rendered, name)
		switch {
		case i >= 0:
			c.volume(at, object(rendered[i]), v)
		case reserved[name]: // a container that mounts it would be taken for the launcher's own
			c.differs(at)
		default:
			c.addedVolume(at, v, mountedBeside(want, got, name))
		}
	}
	for _, w := range rendered {
		if name := text(object(w)["name"]); place(array(got["volumes"]), name) < 0 {
			c.differs("spec.volumes[" + name + "]")
		}
	}
}

// addedVolume notes what a volume that was not rendered has besides what is permitted.
func (c *comparison) addedVolume(path string, v map[string]any, mounted bool) {
	for k := range v {
		if k != "name" && !addedVolumes[k] {
			c.differs(path + "." + k)
		}
	}
	for i, s := range array(object(v["projected"])["sources"]) {
		for k, source := range object(s) {
			if !addedSources[k] || k == "serviceAccountToken" && text(object(source)["audience"]) == "" {
				c.differs(fmt.Sprintf("%s.projected.sources[%d].%s", path, i, k))
			}
		}
	}
	if !mounted && (v["configMap"] != nil || v["projected"] != nil) {
		c.differs(path)
	}
}

// mountedBeside says that a container that was not rendered mounts the volume.
func mountedBeside(want, got map[string]any, volume string) bool {
	for _, list := range []string{"containers", "initContainers"} {
		for _, g := range array(got[list]) {
			if place(array(want[list]), text(object(g)["name"])) < 0 && place(array(object(g)["volumeMounts"]), volume) >= 0 {
				return true
			}
		}
	}
	return false
}

func (c *comparison) volume(path string, want, got map[string]any) {
	c.fields(path, want, got, set("image"))
	c.fields(path+".image", object(want["image"]), object(got["image"]), set("pullPolicy"))
	if (want["image"] == nil) != (got["image"] == nil) {
		c.differs(path + ".image")
	}
}

// fields compares the fields of two objects but for those that are free.
func (c *comparison) fields(path string, want, got map[string]any, free map[string]bool) {
	for _, k := range union(want, got) {
		w, is := want[k]
		g, has := got[k]
		switch {
		case free[k]:
		case !keyed(path):
			c.value(path+"."+k, w, g)
		case is != has || w != g:
			c.differs(path + "[" + k + "]")
		}
	}
}

// value compares two values. nil: there is none.
func (c *comparison) value(path string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			free := map[string]bool{}
			// The API server adds the values of these labels to the selector.
			if w["matchLabelKeys"] != nil || w["mismatchLabelKeys"] != nil {
				free["labelSelector"] = true
			}
			c.fields(path, w, g, free)
			return
		}
	case []any:
		if g, ok := got.([]any); ok && len(w) == len(g) {
			for i := range w {
				c.value(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])
			}
			return
		}
	}
	if reflect.DeepEqual(want, got) || empty(want) && (empty(got) || isCompleted(path, got)) {
		return
	}
	c.differs(path)
}

func isCompleted(path string, got any) bool {
	for _, d := range completed {
		if d.value == got && d.end.MatchString(path) {
			return true
		}
	}
	return false
}

// empty says that a value says no more than that there is none.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	}
	return false
}

// keyed says that what is at the path is a map whose keys are chosen by whoever writes it.
func keyed(path string) bool { return path == "metadata.labels" || path == "metadata.annotations" }

// place is the index of the element with the name, or -1.
func place(list []any, name string) int {
	return slices.IndexFunc(list, func(e any) bool { return text(object(e)["name"]) == name })
}

func union(a, b map[string]any) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func array(v any) []any {
	l, _ := v.([]any)
	return l
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func set(all ...string) map[string]bool {
	out := map[string]bool{}
	for _, k := range all {
		out[k] = true
	}
	return out
}
