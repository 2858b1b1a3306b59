package share

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// The layout of a queue of virtio 1.
// https://docs.oasis-open.org/virtio/virtio/v1.2/virtio-v1.2.html#x1-430008
const (
	descriptorSize = 16
	nextFlag       = 1 // another descriptor follows
	writeFlag      = 2 // the device writes to it
	ringHeader     = 4 // flags and index of a ring
	noInterrupt    = 1 // the guest wants no interrupt
	maxQueue       = 1024
)

// MaxRequest is how many bytes a request of a guest, or the answer to it, has at most.
const MaxRequest = maxWrite + 16<<10

// workers is how many requests of a queue are worked on at a time.
const workers = 8

// queue is a queue of requests of a guest. What is not locked is changed only while
// it does not run.
type queue struct {
	size      int
	addresses [3]uint64 // in QEMU: descriptors, used, available
	next      uint16    // of the available requests
	kick      *os.File  // says that there are requests
	enabled   bool

	descriptors, available, used []byte
	head, tail                   *uint32 // flags and index of available and used

	mu   sync.Mutex // of call, the ring of used requests and done
	call int
	done uint16

	stop func() // nil: it does not run
}

func newQueue() *queue { return &queue{call: -1} }

// start starts to take requests, if QEMU has said all that is needed.
func (q *queue) start(m *memory, handle func(request []byte, room int) []byte) error {
	if q.stop != nil || !q.enabled || q.kick == nil || q.size == 0 || m == nil {
		return nil
	}
	if err := q.lay(m); err != nil {
		return err
	}
	kick := q.kick
	var all sync.WaitGroup
	var stopped atomic.Bool
	all.Go(func() { q.run(kick, m, handle, &stopped) })
	q.stop = func() {
		stopped.Store(true)
		_ = kick.SetReadDeadline(past)
		all.Wait()
		_ = kick.SetReadDeadline(never)
	}
	return nil
}

// halt waits until no request is under way.
func (q *queue) halt() {
	if q.stop != nil {
		q.stop()
		q.stop = nil
	}
}

// lay finds the queue in the guest's memory.
func (q *queue) lay(m *memory) error {
	n := uint64(q.size)
	q.descriptors = m.inQEMU(q.addresses[0], n*descriptorSize)
	q.used = m.inQEMU(q.addresses[1], ringHeader+n*8)
	q.available = m.inQEMU(q.addresses[2], ringHeader+n*2)
	if q.descriptors == nil || q.used == nil || q.available == nil {
		return errors.New("the queue is not in the guest's memory")
	}
	q.head, q.tail = word(q.available), word(q.used)
	if q.head == nil || q.tail == nil {
		return errors.New("the rings of the queue are not at multiples of four")
	}
	q.done = uint16(atomic.LoadUint32(q.tail) >> 16)
	return nil
}

// run takes requests until it is stopped. A queue that the guest fills with nonsense is
// left alone from then on.
func (q *queue) run(kick *os.File, m *memory, handle func([]byte, int) []byte, stopped *atomic.Bool) {
	var all sync.WaitGroup
	defer all.Wait()
	free := make(chan struct{}, workers)
	for {
		for !stopped.Load() {
			head, ok := q.pop()
			if !ok {
				break
			}
			in, out, err := q.chain(m, head)
			if err != nil {
				return
			}
			free <- struct{}{}
			all.Go(func() {
				defer func() { <-free }()
				q.push(head, out.write(handle(in, out.size)))
			})
		}
		var count [8]byte
		if _, err := kick.Read(count[:]); err != nil || stopped.Load() {
			return
		}
	}
}

// pop takes the next request that the guest made available.
func (q *queue) pop() (uint16, bool) {
	if uint16(atomic.LoadUint32(q.head)>>16) == q.next {
		return 0, false
	}
	at := ringHeader + 2*(int(q.next)%q.size)
	q.next++
	return binary.LittleEndian.Uint16(q.available[at:]), true
}

// room is the memory that the guest wants an answer in.
type room struct {
	parts [][]byte
	size  int
}

// write writes an answer and returns its size.
func (r room) write(answer []byte) int {
	n := 0
	for _, p := range r.parts {
		n += copy(p, answer[n:])
	}
	return n
}

// chain copies the request that begins with a descriptor, and returns the room for the
// answer.
func (q *queue) chain(m *memory, head uint16) ([]byte, room, error) {
	var in []byte
	var out room
	for range q.size {
		if int(head) >= q.size {
			return nil, out, fmt.Errorf("descriptor %d of %d", head, q.size)
		}
		d := q.descriptors[int(head)*descriptorSize:][:descriptorSize]
		address, size := binary.LittleEndian.Uint64(d), uint64(binary.LittleEndian.Uint32(d[8:]))
		flags, next := binary.LittleEndian.Uint16(d[12:]), binary.LittleEndian.Uint16(d[14:])
		b := m.at(address, size)
		if b == nil {
			return nil, out, fmt.Errorf("%d bytes at %#x are not in the guest's memory", size, address)
		}
		if flags&writeFlag == 0 {
			in = append(in, b...)
		} else {
			out.parts = append(out.parts, b)
			out.size += len(b)
		}
		if len(in) > MaxRequest || out.size > MaxRequest {
			return nil, out, fmt.Errorf("a request has more than %d bytes", MaxRequest)
		}
		if flags&nextFlag == 0 {
			return in, out, nil
		}
		head = next
	}
	return nil, out, errors.New("a request has no end")
}

// push reports a request to the guest as done, with n bytes of an answer.
func (q *queue) push(head uint16, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	entry := q.used[ringHeader+8*(int(q.done)%q.size):]
	binary.LittleEndian.PutUint32(entry, uint32(head))
	binary.LittleEndian.PutUint32(entry[4:], uint32(n))
	q.done++
	atomic.StoreUint32(q.tail, uint32(q.done)<<16) // its flags are 0: the guest says when there are requests
	if uint16(atomic.LoadUint32(q.head))&noInterrupt != 0 || q.call < 0 {
		return
	}
	one := binary.NativeEndian.AppendUint64(nil, 1)
	_, _ = unix.Write(q.call, one)
}

// setCall sets the descriptor by which the guest gets interrupts. -1: none does.
func (q *queue) setCall(fd int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.call >= 0 {
		_ = unix.Close(q.call)
	}
	q.call = fd
}

// setKick sets the descriptor by which the guest announces requests. -1: none does.
func (q *queue) setKick(fd int) error {
	q.halt()
	if q.kick != nil {
		_ = q.kick.Close()
		q.kick = nil
	}
	if fd < 0 {
		return nil
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	q.kick = os.NewFile(uintptr(fd), "kick")
	return nil
}

func (q *queue) close() {
	_ = q.setKick(-1)
	q.setCall(-1)
}
