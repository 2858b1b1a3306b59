// Package launcher decides the life of one domain, from the wish for it to its
// end.
//
// [Decide] takes everything that is known at one moment and returns what to do
// now, what to tell the handler, and when to look again:
//
//	domain     wanted     stop asked for    plan
//	gone       any        any               exit with the end
//	absent     any        yes               exit, cancelled
//	absent     fault is   no                exit, cannot start
//	           terminal
//	absent     yes        no                start, or wait until the next try
//	absent     no         no                wait
//	starting   any        yes               cancel the start
//	starting   any        no                wait
//	running    any        yes               ask the guest to power off, every 2 s;
//	                                        after the grace period destroy the domain
//	running    any        no                wait
//
// A domain is started once: what is gone does not come back. Who observes and
// acts is launcher/supervisor. The package computes; it touches nothing.
package launcher
