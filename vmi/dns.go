package vmi

// DNSPolicy says which name servers a machine uses. It means what the field of
// the same name means in a pod.
type DNSPolicy string

// The name servers of a machine. The zero value stands for ClusterFirst.
const (
	DNSClusterFirst            DNSPolicy = "ClusterFirst"
	DNSClusterFirstWithHostNet DNSPolicy = "ClusterFirstWithHostNet"
	DNSDefault                 DNSPolicy = "Default"
	DNSNone                    DNSPolicy = "None"
)

// DNSConfig is added to the name servers, search domains and options that follow
// from a DNSPolicy. KubeVirt and Kubernetes call the type PodDNSConfig.
type DNSConfig struct {
	// Nameservers are addresses of name servers, at most three. The guest is told
	// those of IPv4 by DHCP, and of the others nothing.
	// +optional
	// +listType=atomic
	Nameservers []string `json:"nameservers,omitempty"`

	// Searches are domains that are tried after a name that is not complete, in
	// this order, at most six. The guest is told them by DHCP; the first is its
	// own domain.
	// +optional
	// +listType=atomic
	Searches []string `json:"searches,omitempty"`

	// Options are options of the pod's resolver. One of the same name replaces
	// the one that follows from the policy. The guest's own resolver is told
	// nothing of them: DHCP has no words for them.
	// +optional
	// +listType=atomic
	Options []DNSConfigOption `json:"options,omitempty"`
}

// DNSConfigOption is an option of the resolver, as in resolv.conf.
type DNSConfigOption struct {
	// Name is the option, for example ndots.
	Name string `json:"name,omitempty"`

	// Value is the option's value, if it has one.
	// +optional
	Value *string `json:"value,omitempty"`
}
