// Package frontproxy says who calls an aggregated API, and what the caller may.
//
// The API server's aggregator sends requests on behalf of users. It names them in headers,
// and proves by a client certificate that it is the aggregator. [Proxy] verifies that
// certificate against the ConfigMap kube-system/extension-apiserver-authentication, which
// it watches, and reads the headers only after that. [Authorizer] asks the API server by
// one SubjectAccessReview whether the caller may do it. Both fail closed: what is not
// known is refused.
//
// A server that embeds it requests client certificates (tls.RequestClientCert), and needs
// the Role extension-apiserver-authentication-reader of kube-system and the right to
// create SubjectAccessReviews (ClusterRole system:auth-delegator).
//
// The package is a controller: it joins an informer and a client of the API server.
package frontproxy
