// Package plan says what a local cluster consists of: its hosts, the programs
// on each with their arguments, and the configuration files they read.
//
// [New] computes all of it from a [Config]. A [Plan] is data: the hosts can be
// stored as JSON and are what package host runs; the files are text.
//
// It computes; it touches nothing. Keys and certificates are made elsewhere
// (package pki) and appear here only as paths.
//
// Addresses are the same in every cluster, because every cluster has network
// namespaces of its own: 10.200.0.1 is the control plane, 10.200.0.11 the first
// node, 10.244.N.0/24 are the pods of node N, 10.96.0.0/16 the Services; with IPv6
// fd00:200::1, fd00:200::11, fd00:244:0:N::/64 and fd00:96::/112.
//
// Traps: containerd needs restrict_oom_score_adj where the capability
// SYS_RESOURCE is missing, or runc dies with "can't get final child's PID from
// pipe". The kubelet refuses cgroup v1 from 1.35 on unless failCgroupV1 is false.
package plan
