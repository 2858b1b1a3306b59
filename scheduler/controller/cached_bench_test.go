package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// BenchmarkCached prints what one object of each kind takes in the caches, in bytes of the
// heap: as the API server sends it, and as it is kept. The objects are those of a VM that
// runs.
func BenchmarkCached(b *testing.B) {
	k := &keeper{}
	benchmarkCached(b, "pod", k.pod)
	benchmarkCached(b, "instance", k.instance)
	benchmarkCached(b, "vm", keepVM)
	benchmarkCached(b, "revision", keepRevision)
	benchmarkCached(b, "node", keepNode)
}

func benchmarkCached[T any, P interface {
	*T
	vmi.Object
}](b *testing.B, kind string, keep func(P)) {
	b.Run(kind, func(b *testing.B) {
		raw, err := os.ReadFile(filepath.Join("testdata", "cached", kind+".json"))
		require.NoError(b, err)
		whole := heapOf(b, func(i int) any { return decoded[T, P](b, raw, i) })
		kept := heapOf(b, func(i int) any {
			o := decoded[T, P](b, raw, i)
			o.SetManagedFields(nil)
			keep(o)
			return o
		})
		b.ReportMetric(whole, "whole-B")
		b.ReportMetric(kept, "kept-B")
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkPodChanged compares a launcher pod as it is kept with the one before. A status that
// changed costs less than the rest, which is compared after it.
func BenchmarkPodChanged(b *testing.B) {
	raw, err := os.ReadFile(filepath.Join("testdata", "cached", "pod.json"))
	require.NoError(b, err)
	before := decoded[corev1.Pod](b, raw, 0)
	before.SetManagedFields(nil)
	(&keeper{}).pod(before)
	status, same := before.DeepCopy(), before.DeepCopy()
	status.Status.Phase = corev1.PodFailed
	same.ResourceVersion += "1"
	for name, now := range map[string]*corev1.Pod{"status": status, "nothing": same} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				podChanged(before, now)
			}
		})
	}
}

// decoded is the object with a name of its own.
func decoded[T any, P interface {
	*T
	vmi.Object
}](b *testing.B, raw []byte, i int) P {
	o := P(new(T))
	require.NoError(b, json.Unmarshal(raw, o))
	o.SetName(fmt.Sprint(o.GetName(), i))
	return o
}

// heapOf is what one of many objects takes of the heap.
func heapOf(b *testing.B, object func(int) any) float64 {
	b.Helper()
	return heapOfSome(2000, object)
}

// heapOfSome is what one of n objects takes of the heap.
func heapOfSome(n int, object func(int) any) float64 {
	all := make([]any, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range all {
		all[i] = object(i)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(all)
	return float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / float64(n)
}
