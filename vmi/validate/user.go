package validate

// User is who asks for a change. The zero value is a user of the cluster.
type User struct {
	// Kind is what the user is to Podvisor.
	Kind UserKind
	// Node is where a handler runs. One that does not say may change no VMI.
	Node string
}

// UserKind is what a user is to Podvisor.
type UserKind string

// The kinds of users. The zero value is a user of the cluster.
const (
	// Anybody is a person or a program outside.
	Anybody UserKind = ""
	// Controller is the part that acts for the cluster.
	Controller UserKind = "controller"
	// Handler is the part that acts for one node.
	Handler UserKind = "handler"
)

func (u User) ours() bool { return u.Kind != Anybody }
