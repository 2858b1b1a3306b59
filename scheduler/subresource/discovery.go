package subresource

import (
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	built "github.com/podvisor/podvisor/internal/version"
	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
)

const root = "/apis/" + vmi.SubresourceGroup

// discovery answers what everyone may read, without identity. It is false for any other
// path.
func (s *Server) discovery(r *http.Request) (answer any, ok bool) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, false
	}
	switch r.URL.Path {
	case "/":
		return metav1.RootPaths{Paths: []string{"/apis", root, root + "/v1", root + "/v1alpha3", "/openapi/v2", "/openapi/v3"}}, true
	case "/apis":
		return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group()}}, true
	case root:
		g := group()
		g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		return g, true
	case "/openapi/v2":
		return openAPI2(), true
	case "/openapi/v3":
		index := map[string]any{}
		for _, v := range versions {
			at := strings.TrimPrefix(root, "/") + "/" + v
			index[at] = map[string]string{"serverRelativeURL": "/openapi/v3/" + at}
		}
		return map[string]any{"paths": index}, true
	}
	for _, v := range versions {
		switch r.URL.Path {
		case root + "/" + v:
			return resources(v), true
		case root + "/" + v + "/version":
			return s.Version, true
		case root + "/" + v + "/healthz":
			return s.healthz(), true
		case "/openapi/v3" + root + "/" + v:
			return openAPI3(v), true
		}
	}
	return nil, false
}

func group() metav1.APIGroup {
	g := metav1.APIGroup{Name: vmi.SubresourceGroup, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0"}}}
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: vmi.SubresourceGroup + "/" + v, Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

// paths are what is served, as "virtualmachines/start", in order.
func paths() (out []string) {
	for _, v := range verb.All() {
		out = append(out, v.Path())
	}
	slices.Sort(out)
	return out
}

func resources(v string) metav1.APIResourceList {
	l := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: vmi.SubresourceGroup + "/" + v}
	for _, p := range paths() {
		l.APIResources = append(l.APIResources, metav1.APIResource{Name: p, Namespaced: true})
	}
	return l
}

// own is the version of this program.
func own() version.Info {
	i := built.Of()
	state := "clean"
	if i.Dirty {
		state = "dirty"
	}
	return version.Info{
		Major: "1", Minor: "0", GitVersion: i.Version, GitCommit: i.Commit, GitTreeState: state, BuildDate: i.Date,
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// operations are the paths of a version for OpenAPI. schema makes the type of a parameter.
func operations(v string, schema func() map[string]any) map[string]any {
	parameter := func(name string) map[string]any {
		p := schema()
		maps.Copy(p, map[string]any{"name": name, "in": "path", "required": true})
		return p
	}
	out := map[string]any{}
	for _, of := range verb.All() {
		at := root + "/" + v + "/namespaces/{namespace}/" + of.Resource
		parameters := []any{parameter("namespace")}
		id := v + "-" + of.Resource
		if of.Subresource != "" {
			at += "/{name}/" + of.Subresource
			parameters = append(parameters, parameter("name"))
			id += "-" + strings.ReplaceAll(of.Subresource, "/", "-")
		}
		if of.Tail != "" {
			at += "/{port}"
			parameters = append(parameters, parameter("port"))
		}
		out[at] = map[string]any{strings.ToLower(of.Method): map[string]any{
			"operationId": id, "parameters": parameters,
			"responses": map[string]any{"default": map[string]any{"description": "empty, JSON, or a Status"}},
		}}
	}
	return out
}

var info = map[string]any{"title": "Podvisor", "version": "v1"}

func openAPI2() any {
	return map[string]any{"swagger": "2.0", "info": info, "definitions": map[string]any{},
		"paths": operations("v1", func() map[string]any { return map[string]any{"type": "string"} })}
}

func openAPI3(v string) any {
	return map[string]any{"openapi": "3.0.0", "info": info,
		"paths": operations(v, func() map[string]any { return map[string]any{"schema": map[string]any{"type": "string"}} })}
}
