// Package leader leads with one controller after the other in one process.
//
// A [Leader] finds out what launcher pods are made with, makes a
// [controller.Controller], and runs it while the process has the lease. After a lost lease it
// makes another one, and waits for the lease again. Its methods answer for the Controller that
// there is.
//
// So neither an API server that does not answer nor a lost lease ends the process. That
// would end the webhooks and the streams of users, and in the end cost the back-off of its
// container.
//
// The package is a controller: it joins scheduler/controller with the API server's version.
package leader
