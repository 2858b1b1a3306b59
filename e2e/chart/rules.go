package chart

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/podvisor/podvisor/e2e/install"
)

// How a value is written into a template.
const (
	// asJSON: whatever the value is.
	asJSON = "{{ toJson .Values.%s }}"
	// asText: as a string, such as an environment variable.
	asText = "{{ .Values.%s | quote }}"
	// asFlag: the same of a value that is true or false.
	asFlag = "{{ toString .Values.%s | quote }}"
	// asCEL: a list of strings as an expression, which is a string.
	asCEL = "{{ toJson .Values.%s | quote }}"
	// asOptional: the field is there only if the value is.
	asOptional = ""
)

// rule is a field of an object that a value sets. Its default is what the manifests say.
type rule struct {
	kind, object string
	// field is the path to the field, with elements of lists as [name=x].
	field []string
	// value is the path of the value, with dots.
	value string
	// as is one of the formats above.
	as string
}

const (
	deployment, daemonSet = "Deployment", "DaemonSet"
	policy                = "ValidatingAdmissionPolicy"
	controllerPolicy      = "virt-controller.kubevirt.io"
)

// rules are all fields that values set, but for those of images and of the namespace, which
// kustomize finds.
func rules() []rule {
	all := []rule{
		{deployment, "virt-controller", []string{"spec", "replicas"}, "virtController.replicas", asJSON},
		{deployment, "virt-controller", variable("virt-controller", "ALLOW_EMULATION"), "emulation", asFlag},
		{daemonSet, "virt-handler", variable("virt-handler", "ALLOW_EMULATION"), "emulation", asFlag},
		{deployment, "virt-controller", variable("virt-controller", "CONTAINER_DISKS"), "containerDisks", asText},
		{deployment, "virt-controller", variable("virt-controller", "POD_FIELDS"), "admission.podFields", asText},
	}
	for _, list := range []string{"sidecars", "hostDisks", "audiences", "configMapsBeside"} {
		all = append(all, rule{policy, controllerPolicy, []string{"spec", "variables", "[name=" + list + "]", "expression"}, "admission." + list, asCEL})
	}
	for name, kind := range map[string]string{"virt-controller": deployment, "virt-certificates": deployment, "virt-handler": daemonSet} {
		at := func(value string) string { return camel(name) + "." + value }
		all = append(all,
			rule{kind, name, variable(name, "GOMEMLIMIT"), at("goMemoryLimit"), asText},
			rule{kind, name, append(container(name), "resources"), at("resources"), asJSON},
			rule{kind, name, append(podSpec(), "nodeSelector"), at("nodeSelector"), asJSON},
			rule{kind, name, append(podSpec(), "tolerations"), at("tolerations"), asJSON},
			rule{kind, name, append(podSpec(), "imagePullSecrets"), "imagePullSecrets", asOptional},
		)
	}
	for _, t := range monitoring {
		if t.labelled != "" {
			all = append(all, rule{t.kind, t.labelled, []string{"metadata", "labels"}, t.value + ".labels", asJSON})
		}
	}
	return all
}

func podSpec() []string { return []string{"spec", "template", "spec"} }

func container(name string) []string { return append(podSpec(), "containers", "[name="+name+"]") }

func variable(of, name string) []string {
	return append(container(of), "env", "[name="+name+"]", "value")
}

// token stands in an object for the value of the path, until the object is text.
func token(value string) string { return "__" + value + "__" }

// templated is what is made of the manifests.
type templated struct{ definitions, components, values string }

// templates makes the templates and the values of the manifests.
func (c Config) templates() (templated, error) {
	objects, err := c.render(token("namespace"), monitoring...)
	if err != nil {
		return templated{}, err
	}
	defaults := map[string]*yaml.RNode{}
	for _, component := range []string{"virt-controller", "virt-handler", "virt-launcher", "virt-launcher-full"} {
		defaults["images."+camel(component)] = yaml.NewStringRNode(c.Reference(component))
	}
	tokens := map[string]string{"namespace": asText}
	for _, r := range rules() {
		if err := r.apply(objects, defaults); err != nil {
			return templated{}, err
		}
		tokens[r.value] = r.as
	}
	known, conditions, err := c.conditions()
	if err != nil {
		return templated{}, err
	}
	var definitions, components strings.Builder
	for _, o := range objects {
		if known[key(o)].GetNamespace() == "" { // kustomize writes the namespace into some objects that are in none
			if err := o.PipeE(yaml.Lookup("metadata"), yaml.Clear("namespace")); err != nil {
				return templated{}, err
			}
		}
		out := &components
		if o.GetKind() == "CustomResourceDefinition" {
			out = &definitions
			if err := o.PipeE(yaml.SetAnnotation("helm.sh/resource-policy", "keep")); err != nil {
				return templated{}, err
			}
		}
		text, err := o.AsYAML()
		if err != nil {
			return templated{}, err
		}
		if group, _, _ := strings.Cut(o.GetApiVersion(), "/"); group == "monitoring.coreos.com" {
			text = []byte(installed.Replace(string(text)))
		}
		template := written(string(text), tokens)
		if condition := conditions[key(o)]; condition != "" {
			template = "{{- if " + condition + " }}\n" + template + "{{- end }}\n"
		}
		out.WriteString("---\n" + template)
	}
	values, err := writeValues(defaults)
	return templated{definitions.String(), components.String(), values}, err
}

// key names an object in whatever namespace it is. There is one Namespace.
func key(o *resource.Resource) string {
	if o.GetKind() == "Namespace" {
		return "Namespace"
	}
	return o.GetKind() + "/" + o.GetName()
}

func byKey(all []*resource.Resource) map[string]*resource.Resource {
	out := map[string]*resource.Resource{}
	for _, o := range all {
		out[key(o)] = o
	}
	return out
}

// toggle is a component of the overlays that leaves out objects, or a folder that adds some.
type toggle struct {
	component, resources string
	// kind is that of the objects that it adds. Empty: all that no toggle before it adds.
	kind string
	// value is the path of the values about it. Empty: there are none.
	value string
	// labelled is the name of the object whose labels are a value. Empty: there is none.
	labelled string
	// condition is true in a template where it applies.
	condition string
}

var older = toggle{component: "kubernetes-1.32", condition: `semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version`}

// monitoring are the objects of manifests/monitoring.
var monitoring = []toggle{
	labelled("operator", "ServiceMonitor", "prometheus-kubevirt-rules", "monitoring.serviceMonitor"),
	labelled("operator", "PrometheusRule", "prometheus-kubevirt-rules", "monitoring.rules"),
	labelled("dashboard", "ConfigMap", "podvisor-dashboard", "monitoring.dashboard"),
	{resources: "monitoring/operator", condition: ".Values.monitoring.enabled"},
}

// labelled is an object of a folder of manifests/monitoring with values of its own: whether it
// is there, and the labels that another program finds it by.
func labelled(folder, kind, name, value string) toggle {
	return toggle{resources: "monitoring/" + folder, kind: kind, labelled: name, value: value, condition: ".Values." + value + ".enabled"}
}

// installed has the namespace of Podvisor replaced where no field of an object is one: in
// expressions and labels of rules, and where Prometheus looks for Services.
var installed = strings.NewReplacer(
	`namespace="`+install.Namespace+`"`, `namespace="`+token("namespace")+`"`,
	" namespace: "+install.Namespace+"\n", " namespace: "+token("namespace")+"\n",
	"- "+install.Namespace+"\n", "- \""+token("namespace")+"\"\n",
)

// conditions are those of objects that are not always there, by their keys. known are all
// objects, in their own namespace.
func (c Config) conditions() (known map[string]*resource.Resource, conditions map[string]string, err error) {
	objects, err := c.render("")
	if err != nil {
		return nil, nil, err
	}
	plain := byKey(objects)
	known, conditions = maps.Clone(plain), map[string]string{"Namespace": ".Values.createNamespace"}
	rendered := map[string]map[string]*resource.Resource{} // with a component or a folder
	for _, t := range append([]toggle{older}, monitoring...) {
		with := rendered[t.component+t.resources]
		if with == nil {
			objects, err := c.render("", t)
			if err != nil {
				return nil, nil, err
			}
			with = byKey(objects)
			rendered[t.component+t.resources] = with
		}
		for k := range plain {
			if with[k] == nil {
				conditions[k] = "not (" + t.condition + ")"
			}
		}
		for k, o := range with {
			if known[k] == nil && (t.kind == "" || t.kind == o.GetKind()) {
				known[k], conditions[k] = o, t.condition
			}
		}
	}
	return known, conditions, nil
}

// apply puts the token into the object, and what was there to the defaults.
func (r rule) apply(objects []*resource.Resource, defaults map[string]*yaml.RNode) error {
	n := slices.IndexFunc(objects, func(o *resource.Resource) bool { return o.GetKind() == r.kind && o.GetName() == r.object })
	if n < 0 {
		return fmt.Errorf("the manifests have no %s %s", r.kind, r.object)
	}
	if err := r.set(&objects[n].RNode, defaults); err != nil {
		return fmt.Errorf("%s %s: field %s: %w", r.kind, r.object, strings.Join(r.field, "."), err)
	}
	return nil
}

func (r rule) set(object *yaml.RNode, defaults map[string]*yaml.RNode) error {
	last := len(r.field) - 1
	parent, err := object.Pipe(yaml.Lookup(r.field[:last]...))
	if err != nil {
		return err
	}
	if parent == nil {
		return errors.New("it is not there")
	}
	was := parent.Field(r.field[last])
	switch {
	case was == nil && r.as != asOptional:
		return errors.New("it is not there")
	case was != nil && r.as == asOptional:
		return errors.New("it is there, so it has a default")
	case was != nil:
		defaults[r.value] = was.Value.Copy()
	}
	if r.as == asCEL || r.as == asFlag { // what is in the string
		if defaults[r.value], err = yaml.Parse(yaml.GetValue(was.Value)); err != nil {
			return fmt.Errorf("%q is no value: %w", yaml.GetValue(was.Value), err)
		}
	}
	return parent.PipeE(yaml.SetField(r.field[last], yaml.NewStringRNode(token(r.value))))
}

var (
	// field matches a field that is a token, or an element of a list, with what is before it.
	field = regexp.MustCompile(`(?m)^([ -]*)([\w./-]+): __([a-zA-Z.]+)__\n`)
	// within matches a token in a longer text.
	within = regexp.MustCompile(`__([a-zA-Z.]+)__`)
)

// written is the template of an object, with the values in the places of the tokens.
func written(text string, tokens map[string]string) string {
	text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
	text = field.ReplaceAllStringFunc(text, func(line string) string {
		m := field.FindStringSubmatch(line)
		as, known := tokens[m[3]]
		switch image, is := strings.CutPrefix(m[3], "images."); {
		case is:
			return fmt.Sprintf("%s%s: {{ include \"podvisor.image\" (list . %q) | quote }}\n", m[1], m[2], image)
		case !known:
			return line
		case as == asOptional:
			return fmt.Sprintf("%s{{- with .Values.%s }}\n%[1]s%[3]s: {{ toJson . }}\n%[1]s{{- end }}\n", m[1], m[3], m[2])
		}
		return fmt.Sprintf("%s%s: "+as+"\n", m[1], m[2], m[3])
	})
	return within.ReplaceAllStringFunc(text, func(found string) string {
		value := strings.Trim(found, "_")
		if value == "namespace" {
			return "{{ .Values.namespace }}"
		}
		image, is := strings.CutPrefix(value, "images.")
		if !is {
			return found
		}
		return fmt.Sprintf("{{ include \"podvisor.image\" (list . %q) }}", image)
	})
}
