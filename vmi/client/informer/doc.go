// Package informer keeps caches of objects of the API.
//
// [NewFactory] makes a [Factory] of informers that are shared. [For] returns the
// [Informer] of a kind, which calls handlers when objects change. Its [Lister] reads the
// cache. Both are client-go's own, at the types of package vmi or any other. [NewFiltered]
// makes an informer of one's own, and [Wrap] gives one of client-go's the types.
//
// Informers and listers are generic, instead of generated code for each kind. A kind is
// known by its definition (vmi.DefinitionOf), so a kind of another API group has the same
// ones. The methods are those that client-go generates.
//
// The package is an edge: it touches the API server and nothing else. It is separate from
// package client, so that a program without caches does not link them.
//
// Traps: objects from the cache are shared; copy them (DeepCopy) before changing them. A
// cache is empty until it has synced; never conclude from an empty cache that something
// does not exist. An object that its Go type cannot hold is in the cache with an empty
// spec: ask vmi.Unreadable before judging a spec. Share one informer between all that
// watch the same objects: each has a cache and a watch of its own.
package informer
