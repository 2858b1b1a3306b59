package kinds

import "slices"

// Component is a process of Podvisor, by the name of its service account.
type Component string

// The components that act on objects.
const (
	Controller Component = "virt-controller"
	Handler    Component = "virt-handler"
)

// Grant is what a role of an installation may do with all objects of a kind.
type Grant struct {
	// Role is the name of the ClusterRole.
	Role string
	// Subresource is what of the objects it is for. Empty: the objects themselves.
	Subresource string
	// Verbs are those of Kubernetes' authorization.
	Verbs []string
}

// The roles of users.
const (
	viewers  = "kubevirt.io:view"
	editors  = "kubevirt.io:edit"
	everyone = "kubevirt.io:default"
	movers   = "kubevirt.io:migrate"
)

// to grants the verbs.
func to(role string, verbs ...string) Grant { return Grant{Role: role, Verbs: verbs} }

// of is the grant for a subresource.
func (g Grant) of(subresource string) Grant {
	g.Subresource = subresource
	return g
}

// reading and writing are the grants of the users of a namespace.
func reading() []Grant { return []Grant{to(viewers, "get", "list", "watch")} }

func writing() []Grant {
	return append(reading(), to(editors, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"))
}

// owning are the grants of virt-controller for a kind whose status it writes and whose
// objects own others: what blocks the deletion of its owner needs the right to write the
// owner's finalizers.
func owning(verbs ...string) []Grant {
	by := string(Controller)
	return []Grant{to(by, verbs...), to(by, "patch").of("status"), to(by, "update").of("finalizers")}
}

// replacing adds the right to update to that to patch a status, which is written as a whole.
func replacing(all ...Grant) []Grant {
	for i := range all {
		if all[i].Subresource == "status" {
			all[i].Verbs = append(slices.Clone(all[i].Verbs), "update")
		}
	}
	return all
}

// scaling are the grants of users for a kind with the subresource scale.
func scaling() []Grant {
	return []Grant{to(viewers, "get").of("scale"), to(editors, "get", "update", "patch").of("scale")}
}

// named are the grants of virt-controller for what VMs name.
func named() []Grant { return []Grant{to(string(Controller), "get", "list", "watch")} }

// offered are the grants of everyone for what the cluster offers to all.
func offered() []Grant { return []Grant{to(everyone, "get", "list", "watch")} }
