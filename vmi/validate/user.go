package validate

// User is the requester of a change. The zero value is a user of the cluster.
type User struct {
	// Kind is what the user is to Podvisor.
	Kind UserKind
	// Node is where a handler runs. One without a node may change no VMI.
	Node string
}

// UserKind is what a user is to Podvisor.
type UserKind string

// The kinds of users. The zero value is a user of the cluster.
const (
	// External is a person or a program that is no part of Podvisor.
	External UserKind = ""
	// Controller is the part that acts for the cluster.
	Controller UserKind = "controller"
	// Handler is the part that acts for one node.
	Handler UserKind = "handler"
)

func (u User) ours() bool { return u.Kind != External }
