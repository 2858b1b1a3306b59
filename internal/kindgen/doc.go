// Command kindgen writes into the manifests what follows from the table of kinds
// (package vmi/kinds): which definitions are installed, which kinds the webhooks and
// policies are for, and what the roles may do with them.
//
// The manifests are written by hand, except for the items of lists below a comment that
// names a set of kinds:
//
//	# kinds: SET
//
// An item with resources is a rule for the kinds of the set: kindgen writes a rule for
// each API group, version and scope, each with the comment, and takes everything else from
// the first one. In any other item, as one with an expression, the lists of kinds are
// those of the sets, which are named in the order of the lists, separated by commas:
//
//	# kinds: events of virt-handler, events of virt-controller
//
// The sets, all of served kinds:
//
//	served                all
//	completed             those with defaults
//	others                those without
//	guests                those whose objects run guests, or make others that do
//	makers                those whose objects make VMIs
//	status                those whose status only components of Podvisor write
//	events of COMPONENT   those about whose objects it writes events
//	granted               those that the ClusterRole has grants for, with their verbs
//
// An item that is right already is not changed, so the order of a list and its line
// breaks are free.
package main
