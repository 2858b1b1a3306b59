// Package review asks the API server whose a token is, and what a user may.
//
// Every pod of the cluster can send something that looks like a token. So a question costs
// little, whoever asks it and however often: [Queue] asks it once for all who wait for the
// answer, and the sources of requests take turns. [Guard] lets users with
// the right read a path of a server, by a TokenReview and a SubjectAccessReview. [ClaimsOf] is
// what a token says about itself, by which some are refused without a question. [Allowed] is one
// SubjectAccessReview.
// What is not known is refused.
//
// A process that has a [Guard] needs the rights to create both reviews, which the ClusterRole
// system:auth-delegator has.
//
// The package touches the API server, by the clients that it is given.
package review
