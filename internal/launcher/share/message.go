package share

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// The requests of the vhost-user protocol that QEMU sends for a file system.
// https://www.qemu.org/docs/master/interop/vhost-user.html
const (
	getFeatures         = 1
	setFeatures         = 2
	setOwner            = 3
	resetOwner          = 4
	setMemTable         = 5
	setVringNum         = 8
	setVringAddr        = 9
	setVringBase        = 10
	getVringBase        = 11
	setVringKick        = 12
	setVringCall        = 13
	setVringErr         = 14
	getProtocolFeatures = 15
	setProtocolFeatures = 16
	getQueueNum         = 17
	setVringEnable      = 18
)

const (
	// flagVersion is the version of the protocol, flagReply marks an answer, and
	// flagNeedReply a request that wants one.
	flagVersion, flagReply, flagNeedReply = 0x1, 0x4, 0x8

	// featureProtocol says that features of the protocol are negotiated, and
	// featureVersion1 that the queues are those of virtio 1.
	featureProtocol, featureVersion1 = 1 << 30, 1 << 32

	// protocolMQ lets QEMU ask for the number of queues, and protocolReplyAck lets it
	// ask for an answer to any request.
	protocolMQ, protocolReplyAck = 1 << 0, 1 << 3

	// noDescriptor says that a request about a queue comes without a descriptor.
	noDescriptor = 1 << 8
)

const (
	headerSize = 12
	// maxPayload is more than the largest request has, a table of memory.
	maxPayload = 512
	// maxDescriptors is how many descriptors a request comes with at most.
	maxDescriptors = maxRegions
)

// message is a request, or the answer to one.
type message struct {
	request, flags uint32
	payload        []byte
	descriptors    []int
}

// close closes the descriptors that are left.
func (m *message) close() {
	for _, fd := range m.descriptors {
		_ = unix.Close(fd)
	}
	m.descriptors = nil
}

// take takes the only descriptor of the message.
func (m *message) take() (int, error) {
	if len(m.descriptors) != 1 {
		return -1, fmt.Errorf("%d descriptors came with it, and not one", len(m.descriptors))
	}
	fd := m.descriptors[0]
	m.descriptors = nil
	return fd, nil
}

// words are the first n words of 32 bits of the payload.
func (m *message) words(n int) ([]uint32, error) {
	if len(m.payload) < 4*n {
		return nil, fmt.Errorf("it has %d bytes, and not %d", len(m.payload), 4*n)
	}
	all := make([]uint32, n)
	for i := range all {
		all[i] = binary.NativeEndian.Uint32(m.payload[4*i:])
	}
	return all, nil
}

// long is the payload as a number of 64 bits.
func (m *message) long() (uint64, error) {
	if len(m.payload) < 8 {
		return 0, fmt.Errorf("it has %d bytes, and not 8", len(m.payload))
	}
	return binary.NativeEndian.Uint64(m.payload), nil
}

// read reads a message. Its descriptors belong to the caller, also with an error.
func read(conn *net.UnixConn) (*message, error) {
	m := &message{}
	header, control := make([]byte, headerSize), make([]byte, unix.CmsgSpace(4*maxDescriptors))
	n, controlled, flags, _, err := conn.ReadMsgUnix(header, control)
	if err != nil {
		return m, err
	}
	if err := m.receive(control[:controlled]); err != nil {
		return m, err
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return m, errors.New("too many descriptors came with a message")
	}
	if _, err := io.ReadFull(conn, header[n:]); err != nil {
		return m, err
	}
	m.request, m.flags = binary.NativeEndian.Uint32(header), binary.NativeEndian.Uint32(header[4:])
	size := binary.NativeEndian.Uint32(header[8:])
	if size > maxPayload {
		return m, fmt.Errorf("a message has %d bytes, and at most %d are allowed", size, maxPayload)
	}
	m.payload = make([]byte, size)
	_, err = io.ReadFull(conn, m.payload)
	return m, err
}

func (m *message) receive(control []byte) error {
	if len(control) == 0 {
		return nil
	}
	all, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return fmt.Errorf("parse the descriptors of a message: %w", err)
	}
	for i := range all {
		fds, err := unix.ParseUnixRights(&all[i])
		if err != nil {
			return fmt.Errorf("parse the descriptors of a message: %w", err)
		}
		m.descriptors = append(m.descriptors, fds...)
	}
	return nil
}

// answer writes the answer to a message.
func answer(conn *net.UnixConn, m *message, payload []byte) error {
	out := binary.NativeEndian.AppendUint32(nil, m.request)
	out = binary.NativeEndian.AppendUint32(out, flagVersion|flagReply)
	out = binary.NativeEndian.AppendUint32(out, uint32(len(payload)))
	_, err := conn.Write(append(out, payload...))
	return err
}
