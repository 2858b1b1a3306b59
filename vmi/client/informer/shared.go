package informer

import "k8s.io/client-go/tools/cache"

// Of returns the informer as one of objects T, as for those that client-go makes
// for Kubernetes' own kinds. It must hold objects T only, and be indexed by
// namespace if its Lister selects by namespace.
func Of[T Object](i cache.SharedIndexInformer) Informer[T] {
	return Informer[T]{i, Lister[T]{i.GetIndexer()}}
}
