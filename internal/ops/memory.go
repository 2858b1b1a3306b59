package ops

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// restPeriod is the time between two looks of ReturnMemory.
const restPeriod = 15 * time.Second

// ReturnMemory returns the memory of a burst of work to the host when the process is at rest
// again, until ctx ends. The runtime by itself keeps room for the next burst, of as many
// times what is in use as GOGC says.
func ReturnMemory(ctx context.Context) error {
	next := time.NewTicker(restPeriod)
	defer next.Stop()
	var r returner
	for {
		select {
		case <-next.C:
			r.look()
		case <-ctx.Done():
			return nil
		}
	}
}

// memory is the heap of the process, in bytes.
type memory struct {
	// allocated is what was allocated since the process began.
	allocated uint64
	// live is what was in use at the end of the last collection, and held what the host
	// has given.
	live, held uint64
}

// returner returns memory. The zero value is ready to use.
type returner struct {
	last memory // at the last look
	held uint64
}

// look returns memory if that is due.
func (r *returner) look() {
	now := memoryNow()
	if r.due(now) {
		debug.FreeOSMemory()
		now = memoryNow()
		r.held = now.held
	}
	r.last = now
}

// due says that the process is at rest, as it has allocated less since the last look than is
// live, and that it holds a quarter more than after the last return: the rest is in use.
func (r *returner) due(now memory) bool {
	return r.last.allocated > 0 && now.allocated-r.last.allocated < now.live && now.held > r.held+r.held/4
}

func memoryNow() memory {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	return memory{
		allocated: s[0].Value.Uint64(), live: s[1].Value.Uint64(),
		held: s[2].Value.Uint64() + s[3].Value.Uint64() + s[4].Value.Uint64(),
	}
}
