package share

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// queues are the queues of a file system: one for what must not wait, and one for all
// other requests.
const queues = 2

var past, never = time.Unix(1, 0), time.Time{}

// backend is a file system device of a QEMU, without the part that QEMU itself is.
type backend struct {
	conn   *net.UnixConn
	mounts *mounts
	memory *memory
	queues [queues]*queue
	acks   bool
}

func newBackend(conn *net.UnixConn, fresh func() *session) *backend {
	b := &backend{conn: conn, mounts: &mounts{fresh: fresh}}
	for i := range b.queues {
		b.queues[i] = newQueue()
	}
	return b
}

// serve answers QEMU until the connection ends.
func (b *backend) serve() error {
	defer b.close()
	for {
		m, err := read(b.conn)
		if err == nil {
			err = b.handle(m)
		}
		m.close()
		if err != nil {
			return err
		}
	}
}

func (b *backend) close() {
	_ = b.conn.Close()
	for _, q := range b.queues {
		q.close()
	}
	if b.memory != nil {
		b.memory.unmap()
	}
	b.mounts.close()
}

// handle does what a message asks for and answers it. An error ends the connection: QEMU
// would wait for ever for an answer that it does not get.
func (b *backend) handle(m *message) error {
	payload, err := b.do(m)
	if err != nil {
		err = fmt.Errorf("request %d of QEMU: %w", m.request, err)
	}
	if payload == nil && b.acks && m.flags&flagNeedReply != 0 {
		failed := uint64(0)
		if err != nil {
			failed = 1
		}
		payload = binary.NativeEndian.AppendUint64(nil, failed)
	}
	if payload == nil {
		return err
	}
	return errors.Join(err, answer(b.conn, m, payload))
}

func (b *backend) do(m *message) ([]byte, error) {
	switch m.request {
	case getFeatures:
		return binary.NativeEndian.AppendUint64(nil, featureProtocol|featureVersion1), nil
	case getProtocolFeatures:
		return binary.NativeEndian.AppendUint64(nil, protocolMQ|protocolReplyAck), nil
	case getQueueNum:
		return binary.NativeEndian.AppendUint64(nil, queues), nil
	case setFeatures, setOwner, resetOwner:
		return nil, nil
	case setProtocolFeatures:
		features, err := m.long()
		b.acks = features&protocolReplyAck != 0
		return nil, err
	case setMemTable:
		return nil, b.setMemory(m)
	case setVringKick, setVringCall, setVringErr:
		return nil, b.setDescriptor(m)
	case setVringAddr, setVringNum, setVringBase, getVringBase, setVringEnable:
		return b.setQueue(m)
	}
	return nil, errors.New("it is not known")
}

// setMemory replaces the guest's memory, between requests.
func (b *backend) setMemory(m *message) error {
	next, err := mapMemory(m)
	if err != nil {
		return err
	}
	for _, q := range b.queues {
		q.halt()
	}
	if b.memory != nil {
		b.memory.unmap()
	}
	b.memory = next
	return b.start()
}

// start starts the queues that can run.
func (b *backend) start() error {
	for i, q := range b.queues {
		if err := q.start(b.memory, b.mounts.handle); err != nil {
			return fmt.Errorf("start queue %d: %w", i, err)
		}
	}
	return nil
}

// setDescriptor sets a descriptor of a queue.
func (b *backend) setDescriptor(m *message) error {
	value, err := m.long()
	if err != nil {
		return err
	}
	i, fd := value&0xff, -1
	if i >= queues {
		return fmt.Errorf("there is no queue %d", i)
	}
	if value&noDescriptor == 0 {
		if fd, err = m.take(); err != nil {
			return err
		}
	}
	switch m.request {
	case setVringKick:
		if err := b.queues[i].setKick(fd); err != nil {
			return err
		}
		return b.start()
	case setVringCall:
		b.queues[i].setCall(fd)
	case setVringErr:
		if fd >= 0 {
			return unix.Close(fd) // nothing is reported by it
		}
	}
	return nil
}

// setQueue changes the state of a queue. One that is asked where it is, stops.
func (b *backend) setQueue(m *message) ([]byte, error) {
	words, err := m.words(2)
	if err != nil {
		return nil, err
	}
	i, value := words[0], words[1]
	if i >= queues {
		return nil, fmt.Errorf("there is no queue %d", i)
	}
	q := b.queues[i]
	if m.request == setVringEnable && value != 0 {
		q.enabled = true
		return nil, b.start()
	}
	q.halt()
	switch m.request {
	case setVringEnable:
		q.enabled = false
	case setVringNum:
		if value == 0 || value > maxQueue || value&(value-1) != 0 {
			return nil, fmt.Errorf("a queue cannot have %d entries", value)
		}
		q.size = int(value)
	case setVringBase:
		q.next = uint16(value)
	case setVringAddr:
		if len(m.payload) < 40 {
			return nil, fmt.Errorf("it has %d bytes, and not 40", len(m.payload))
		}
		for n := range q.addresses {
			q.addresses[n] = binary.NativeEndian.Uint64(m.payload[8+8*n:])
		}
	case getVringBase:
		base := binary.NativeEndian.AppendUint32(nil, i)
		return binary.NativeEndian.AppendUint32(base, uint32(q.next)), q.setKick(-1)
	}
	return nil, b.start()
}
