// Command policy makes the NetworkPolicies of a local cluster hold on one node.
//
//	policy NODE KUBECONFIG SERVICES4 SERVICES6
//
// It is the policy controller of kube-router, without its routing and its proxy for
// Services: rules of iptables and sets of ipset in the node's network namespace, for
// packets that pass the node's bridge or leave the node. SERVICES4 and SERVICES6 are the
// networks of the Services' addresses.
//
// While there is no policy, pods that come and go cost nothing. Each change of a policy,
// and of a pod or namespace while there are policies, writes all rules of the node anew, as
// is done every 15 seconds while there are any.
//
// Traps: it calls the programs iptables, ip6tables and ipset. The node itself reaches
// every pod on it, so probes of the kubelet work whatever the policies say. Packets that
// a pod sent before its node's rules were written, moments after the pod started, pass.
package main
