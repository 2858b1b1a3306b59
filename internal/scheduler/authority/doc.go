// Package authority keeps the authority of the certificate that virt-controller
// serves with.
//
// [Authority] makes an authority, keeps its key in a Secret that only its own account
// may read, writes the certificate that it signs into the Secret of virt-controller,
// and writes into the webhook configurations and the APIServices which authority to trust,
// and at which secret paths the webhooks are. It renews all of it before it expires; nothing is restarted. A new
// authority signs only when the API server trusts it.
//
// It serves no requests: what may change a webhook configuration may read every
// object that is written to the cluster. So it has a process and an account of its
// own, and takes nothing from the Secret of virt-controller but the certificate, to
// see whether it must be renewed, and one request: that the webhook that refuses the
// deletion of Podvisor stays in force after its own deletion. It asks the API server
// whether there are VMIs before it fulfils the request, and before it takes it back.
//
// The package is a controller: it joins internal/certificate, which decides what is
// due, with the clients of the API.
package authority
