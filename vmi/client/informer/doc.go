// Package informer keeps caches of objects of the API.
//
// [New] makes an [Informer] from a client: it calls handlers when objects change,
// and its [Lister] reads the cache. Both are client-go's own, at the types of
// package vmi or any other.
//
// The package is an edge: it touches the API server and nothing else. It stands
// beside package client so that a program without caches does not link them.
//
// Traps: objects from the cache are shared; copy them (DeepCopy) before
// changing them. A cache is empty until it has synced; never conclude from an
// empty cache that something does not exist. An object that its Go type cannot hold
// is in the cache with an empty spec: ask vmi.Unreadable before judging a spec. Share one informer between all that
// watch the same objects: each has a cache and a watch of its own.
package informer
