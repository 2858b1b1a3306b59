package cni

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podvisor/podvisor/vmi"
)

// ResourceAnnotation of a NetworkAttachmentDefinition names the resource of nodes that
// each interface of a pod on the network takes one of: a virtual function of a network
// card, or what marks the nodes that have the network.
const ResourceAnnotation = "k8s.v1.cni.cncf.io/resourceName"

// DefinitionResource is the resource of NetworkAttachmentDefinitions.
var DefinitionResource = schema.GroupVersionResource{Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"}

// Definition is what is read of a NetworkAttachmentDefinition. The zero value is one
// that needs no resource.
type Definition struct {
	// Resource is the value of [ResourceAnnotation]. Empty: it has none.
	Resource string
}

// Definitions returns the namespaces and names of the NetworkAttachmentDefinitions that
// the networks of the VMI's spec name, by the networks' names: those whose interface is
// not absent. A default network without a namespace is left out: in which one it is, only
// the configuration of Multus says.
func Definitions(v *vmi.VirtualMachineInstance) map[string]types.NamespacedName {
	all := map[string]types.NamespacedName{}
	for _, n := range v.Spec.Networks {
		if _, ok := interfaceOf(&v.Spec, n); n.Multus == nil || !ok {
			continue
		}
		if n.Multus.Default && !strings.Contains(n.Multus.NetworkName, "/") {
			continue
		}
		namespace, name := split(n.Multus.NetworkName, v.Namespace)
		all[n.Name] = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return all
}

// ResourceFault says why a resource cannot be one of a network, which a device plugin
// offers: the memory and the processors of a pod are none. Empty: it can.
func ResourceFault(name string) string {
	domain, _, ok := strings.Cut(name, "/")
	if !ok || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		return fmt.Sprintf("%q is no resource of a device plugin, as example.com/function is", name)
	}
	// As the API server checks it: a quota has it with this prefix.
	if problems := validation.IsQualifiedName("requests." + name); len(problems) > 0 || strings.HasPrefix(name, "requests.") {
		return fmt.Sprintf("%q is no name of a resource: %s", name, strings.Join(problems, "; "))
	}
	return ""
}
