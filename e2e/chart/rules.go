package chart

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// How a value is written into a template.
const (
	// asJSON: whatever the value is.
	asJSON = "{{ toJson .Values.%s }}"
	// asText: as a string, such as an environment variable.
	asText = "{{ .Values.%s | quote }}"
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

// rules are all fields that values set, but for those that a component of the overlays sets.
func rules() []rule {
	all := []rule{
		{deployment, "virt-controller", []string{"spec", "replicas"}, "virtController.replicas", asJSON},
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
	objects, err := c.render(token("namespace"))
	if err != nil {
		return templated{}, err
	}
	// kustomize writes the namespace into some objects that are in none.
	plain, err := c.render("")
	if err != nil {
		return templated{}, err
	}
	older, err := c.render("", olderComponent)
	if err != nil {
		return templated{}, err
	}
	is, old := byKey(plain), byKey(older)
	defaults := map[string]*yaml.RNode{}
	for _, component := range []string{"virt-controller", "virt-handler", "virt-launcher", "virt-launcher-full"} {
		defaults["images."+camel(component)] = yaml.NewStringRNode(c.Reference(component))
	}
	tokens := map[string]string{"namespace": asText, "emulation": asText}
	for _, r := range rules() {
		if err := r.apply(objects, defaults); err != nil {
			return templated{}, err
		}
		tokens[r.value] = r.as
	}
	var definitions, components strings.Builder
	for _, o := range objects {
		if is[key(o)].GetNamespace() == "" {
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
		fmt.Fprintf(out, "---\n%s", conditional(o.GetKind(), old[key(o)] != nil, written(string(text), tokens)))
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

// olderComponent is the component of the overlays for versions of Kubernetes that lack a kind.
// What it leaves out is in the chart for the versions from newer on.
const (
	olderComponent = "kubernetes-1.32"
	newer          = "1.36"
)

// conditional is the template of an object that is not always there.
func conditional(kind string, inOlder bool, text string) string {
	switch {
	case kind == "Namespace":
		return "{{- if .Values.createNamespace }}\n" + text + "{{- end }}\n"
	case !inOlder:
		return `{{- if semverCompare ">=` + newer + `.0-0" .Capabilities.KubeVersion.Version }}` + "\n" + text + "{{- end }}\n"
	}
	return text
}

// apply puts the token into the object, and what was there to the defaults.
func (r rule) apply(objects []*resource.Resource, defaults map[string]*yaml.RNode) error {
	for _, o := range objects {
		if o.GetKind() != r.kind || o.GetName() != r.object {
			continue
		}
		last := len(r.field) - 1
		parent, err := o.Pipe(yaml.Lookup(r.field[:last]...))
		if err != nil || parent == nil {
			return fmt.Errorf("%s %s has no %s: %w", r.kind, r.object, strings.Join(r.field[:last], "."), err)
		}
		was, err := parent.Pipe(yaml.Lookup(r.field[last]))
		if err != nil || was == nil != (r.as == asOptional) {
			return fmt.Errorf("%s %s: field %s is %v, which its rule does not expect: %w", r.kind, r.object, strings.Join(r.field, "."), was, err)
		}
		if was != nil {
			was = was.Copy()
			if r.as == asCEL {
				if was, err = yaml.Parse(yaml.GetValue(was)); err != nil {
					return fmt.Errorf("%s %s: %s is no list: %w", r.kind, r.object, strings.Join(r.field, "."), err)
				}
			}
			defaults[r.value] = was
		}
		return parent.PipeE(yaml.SetField(r.field[last], yaml.NewStringRNode(token(r.value))))
	}
	return fmt.Errorf("the manifests have no %s %s", r.kind, r.object)
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
		image, is := strings.CutPrefix(value, "images.")
		if !is {
			return found
		}
		return fmt.Sprintf("{{ include \"podvisor.image\" (list . %q) }}", image)
	})
}
