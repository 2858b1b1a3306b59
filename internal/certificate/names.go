package certificate

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/vmi"
)

// What the one who keeps the certificate and the one who serves with it know of each
// other.
const (
	// Service is the Service that the API server calls.
	Service = "virt-controller"
	// ServingSecret has the certificate and its key, as any Secret of the type
	// kubernetes.io/tls, the authorities, the end of the secret paths, and the request of
	// virt-controller that the webhooks stay in force.
	ServingSecret = "virt-controller-certificates"
	// AuthoritySecret has the authorities, the key of the newest and the end of the
	// secret paths. virt-controller may not read it.
	AuthoritySecret = "virt-certificates"
	// Webhooks is the name of both webhook configurations.
	Webhooks = "virt-controller.kubevirt.io"
)

// APIServiceResource is the resource of [APIServices].
var APIServiceResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// APIServices are the names of the objects by which the API server sends the verbs of
// VMs and VMIs to virt-controller.
func APIServices() []string {
	return []string{"v1." + vmi.SubresourceGroup, "v1alpha3." + vmi.SubresourceGroup}
}

// The keys of the Secrets, beside tls.crt and tls.key.
const (
	AuthoritiesKey  = "ca.crt"
	AuthorityKeyKey = "ca.key"
	// PathKey has the last part of the paths at which the API server requests reviews.
	PathKey = "path"
	// HoldKey is there while the webhook that refuses the deletion of Podvisor is to
	// stay in force after its own deletion.
	HoldKey = "hold"
)

// HoldFinalizer keeps the validating webhooks in force after a deletion of Podvisor
// that they have refused: nothing can refuse their own.
const HoldFinalizer = "podvisor.io/uninstall"

// Path is the secret path of the webhook of this name, which its first label says:
// /admission/evictions/TOKEN for evictions.virt-controller.kubevirt.io.
func Path(webhook, token string) string { return Below(webhook) + "/" + token }

// Below is the path of the webhook of this name without its secret part.
func Below(webhook string) string {
	first, _, _ := strings.Cut(webhook, ".")
	return "/admission/" + first
}
