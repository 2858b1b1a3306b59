package fake

import (
	"cmp"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
)

// kubernetes is the version of Kubernetes whose API server this one is like.
var kubernetes = version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0", GitTreeState: "clean", Platform: "linux/amd64"}

// aggregated is the type of an answer with the resources of all groups at once.
const aggregated = runtime.ContentTypeJSON + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// catalogue is what is served: the resources by group and version.
type catalogue map[schema.GroupVersion][]metav1.APIResource

// catalogue is what the server serves.
func (s *Server) catalogue() catalogue {
	c := catalogue{}
	for _, d := range s.kinds {
		c[d.GroupVersion()] = append(c[d.GroupVersion()], resourcesOf(d)...)
	}
	verbs := schema.GroupVersion{Group: vmi.SubresourceGroup, Version: vmi.GroupVersion.Version}
	for _, v := range verb.All() {
		c[verbs] = append(c[verbs], metav1.APIResource{Name: v.Path(), Namespaced: true, Verbs: metav1.Verbs{verbOf[v.Method]}})
	}
	for _, l := range c {
		slices.SortFunc(l, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	}
	return c
}

// verbOf are the verbs of Kubernetes' authorization, by the methods of calls.
var verbOf = map[string]string{verb.Get: "get", verb.Put: "update"}

// resourcesOf are the resource of a kind and its subresources.
func resourcesOf(d *vmi.Definition) []metav1.APIResource {
	part := metav1.Verbs{"get", "patch", "update"}
	out := []metav1.APIResource{{
		Name: d.Plural, SingularName: strings.ToLower(d.Kind), Namespaced: !d.ClusterScoped, Kind: d.Kind, ShortNames: d.ShortNames, Categories: d.Categories,
		Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}}
	if d.Status {
		out = append(out, metav1.APIResource{Name: d.Plural + "/status", Namespaced: !d.ClusterScoped, Kind: d.Kind, Verbs: part})
	}
	if d.Scale != nil {
		scale := autoscalingv1.SchemeGroupVersion
		out = append(out, metav1.APIResource{Name: d.Plural + "/scale", Namespaced: !d.ClusterScoped, Group: scale.Group, Version: scale.Version, Kind: "Scale", Verbs: part})
	}
	return out
}

// discovery answers what clients ask before they ask for objects: the version, the groups
// and their resources. It is false for any other path; nil is the answer where a group or
// version is asked for that is not served.
func (s *Server) discovery(r *http.Request) (answer any, ok bool) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, false
	}
	all := s.catalogue()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch at := parts[0]; {
	case r.URL.Path == "/version":
		return kubernetes, true
	case at == "openapi" && len(parts) > 1 && parts[1] == "v3":
		return all.openAPI(parts[2:]), true
	case at == "api" && len(parts) == 1:
		if wantsAggregated(r) {
			return all.aggregated(func(group string) bool { return group == "" }), true
		}
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: all.versions("")}, true
	case at == "apis" && len(parts) == 1:
		if wantsAggregated(r) {
			return all.aggregated(func(group string) bool { return group != "" }), true
		}
		l := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, g := range all.groups() {
			if g != "" {
				l.Groups = append(l.Groups, all.group(g))
			}
		}
		return l, true
	case at == "apis" && len(parts) == 2:
		g := all.group(parts[1])
		if len(g.Versions) == 0 {
			return nil, true
		}
		g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		return g, true
	case at == "api" && len(parts) == 2:
		return all.list(schema.GroupVersion{Version: parts[1]}), true
	case at == "apis" && len(parts) == 3:
		return all.list(schema.GroupVersion{Group: parts[1], Version: parts[2]}), true
	}
	return nil, false
}

// groups are the names of the groups, in order.
func (c catalogue) groups() []string {
	names := map[string]bool{}
	for gv := range c {
		names[gv.Group] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// versions are the versions of the group, in order.
func (c catalogue) versions(group string) []string {
	out := []string{}
	for gv := range c {
		if gv.Group == group {
			out = append(out, gv.Version)
		}
	}
	slices.Sort(out)
	return out
}

func (c catalogue) group(name string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for _, v := range c.versions(name) {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: schema.GroupVersion{Group: name, Version: v}.String(), Version: v})
	}
	if len(g.Versions) > 0 {
		g.PreferredVersion = g.Versions[0]
	}
	return g
}

// list are the resources of a version of a group, or nil if it is not served.
func (c catalogue) list(gv schema.GroupVersion) any {
	all, ok := c[gv]
	if !ok {
		return nil
	}
	return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(), APIResources: all}
}

// wantsAggregated says that the client asks first for the resources of all groups at once.
func wantsAggregated(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	kind, params, err := mime.ParseMediaType(first)
	return err == nil && kind == runtime.ContentTypeJSON && params["as"] == "APIGroupDiscoveryList" && params["v"] == "v2"
}

// aggregated are the resources of the groups.
func (c catalogue) aggregated(has func(group string) bool) apidiscoveryv2.APIGroupDiscoveryList {
	l := apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	for _, name := range c.groups() {
		if !has(name) {
			continue
		}
		g := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, v := range c.versions(name) {
			gv := schema.GroupVersion{Group: name, Version: v}
			g.Versions = append(g.Versions, apidiscoveryv2.APIVersionDiscovery{Version: v, Resources: discovered(gv, c[gv]), Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
		}
		l.Items = append(l.Items, g)
	}
	return l
}

// discovered are the resources in the form that has their subresources in it.
func discovered(gv schema.GroupVersion, all []metav1.APIResource) []apidiscoveryv2.APIResourceDiscovery {
	var out []apidiscoveryv2.APIResourceDiscovery
	for _, r := range all {
		kind := &metav1.GroupVersionKind{Group: cmp.Or(r.Group, gv.Group), Version: cmp.Or(r.Version, gv.Version), Kind: r.Kind}
		name, below, isBelow := strings.Cut(r.Name, "/")
		if len(out) == 0 || out[len(out)-1].Resource != name {
			d := apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: apidiscoveryv2.ScopeNamespace, ResponseKind: kind}
			if !r.Namespaced {
				d.Scope = apidiscoveryv2.ScopeCluster
			}
			out = append(out, d)
		}
		d := &out[len(out)-1]
		if isBelow {
			d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: below, ResponseKind: kind, Verbs: r.Verbs})
			continue
		}
		d.SingularResource, d.ShortNames, d.Categories, d.Verbs = r.SingularName, r.ShortNames, r.Categories, r.Verbs
	}
	return out
}

// openAPI is the document of a version of a group, or the index of all of them where no
// path is given. It says that field validation is done, and has no schemas. Nil: there is
// no document.
func (c catalogue) openAPI(at []string) any {
	index := map[string]any{}
	for gv, all := range c {
		path := "apis/" + gv.String()
		if gv.Group == "" {
			path = "api/" + gv.Version
		}
		if strings.Join(at, "/") == path {
			return document(gv, all)
		}
		index[path] = map[string]string{"serverRelativeURL": "/openapi/v3/" + path}
	}
	if len(at) > 0 {
		return nil
	}
	return map[string]any{"paths": index}
}

func document(gv schema.GroupVersion, all []metav1.APIResource) any {
	paths := map[string]any{}
	for _, r := range all {
		if r.Kind == "" || strings.Contains(r.Name, "/") {
			continue
		}
		paths["/"+r.Name+"/{name}"] = map[string]any{"patch": map[string]any{
			"x-kubernetes-group-version-kind": map[string]string{"group": gv.Group, "version": gv.Version, "kind": r.Kind},
			"parameters":                      []any{map[string]any{"name": "fieldValidation", "in": "query", "schema": map[string]string{"type": "string"}}},
			"responses":                       map[string]any{},
		}}
	}
	return map[string]any{"openapi": "3.0.0", "info": map[string]string{"title": "Kubernetes", "version": kubernetes.GitVersion}, "paths": paths}
}
