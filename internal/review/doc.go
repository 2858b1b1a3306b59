// Package review asks the API server whose a token is, and what a user may.
//
// Every pod of the cluster can send something that looks like a token. So a question costs
// little, whoever asks it and however often: [Queue] asks it once for all who wait for the
// answer, and the sources of requests take turns. [Allowed] is one SubjectAccessReview.
// What is not known is refused.
//
// The package touches the API server, by the clients that it is given.
package review
