// Package reconcile is the kit that the controllers of all kinds are made of.
//
// A [Loop] takes keys from a work queue and calls a [Func] for each. [Caches] are
// the informers that all loops of a process share, and [Watch] queues keys when
// their objects change. A [Writer] writes objects of one kind and keeps the
// answers until the informer's cache has them. [Events] writes events.
//
// Errors of a Func have three classes. One that wraps vmi.ErrInvalid ends the
// retries: only a change of the object, which queues the key anew, helps. A
// conflict is retried without a line in the log: the cache was behind. Every
// other error is logged and retried with growing delays, NotFound and a panic
// included; a Func that expects NotFound handles it itself.
//
// Traps: objects from caches and from a Writer are shared; copy them before
// changing them. A Func gets keys whose object is gone. A cache says that an
// object does not exist a moment too early or too late.
package reconcile
