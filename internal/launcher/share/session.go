package share

import (
	"encoding/binary"
	"io"
	"log"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// maxWrite is how many bytes one request reads or writes at most.
const maxWrite = 256 << 10

// What is read of a request before it is handled.
const (
	opInit       = 26 // begins a mount
	opcodeAt     = 4
	uniqueAt     = 8
	inHeaderSize = 40
	outHeader    = 16
)

// session is one mount of the folder by the guest, with all that the guest knows and has
// open.
type session struct {
	folder *folder
	server *fuse.ProtocolServer
}

func newSession(root int, c Config) *session {
	f := newFolder(root, c)
	return &session{folder: f, server: fuse.NewProtocolServer(f, &fuse.MountOptions{
		MaxWrite:           maxWrite,
		DisableReadDirPlus: true,
		DisableXAttrs:      true,
		Logger:             log.New(io.Discard, "", 0),
		PanicHandler:       func(any) fuse.Status { return fuse.EIO },
	})}
}

// mounts are the sessions of a guest one after the other: a guest that boots again
// forgets nothing of what it knew, and mounts anew.
type mounts struct {
	fresh func() *session

	mu  sync.RWMutex // held for reading while a request is worked on, for writing while a session begins
	now *session
}

// handle answers a request. The answer has at most room bytes.
func (m *mounts) handle(request []byte, room int) []byte {
	if len(request) < inHeaderSize {
		return nil
	}
	if binary.NativeEndian.Uint32(request[opcodeAt:]) == opInit {
		return m.begin(request, room)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.now == nil {
		return failure(request, room, syscall.ENOTCONN)
	}
	return m.now.handle(request, room)
}

func (s *session) handle(request []byte, room int) (answer []byte) {
	defer func() {
		if recover() != nil { // a request that no kernel sends
			answer = failure(request, room, syscall.EIO)
		}
	}()
	out := make([]byte, room)
	n, status := s.server.HandleRequest([][]byte{request}, [][]byte{out})
	if !status.Ok() {
		return failure(request, room, syscall.Errno(status))
	}
	return out[:n]
}

// failure is the answer of an error to a request.
func failure(request []byte, room int, e syscall.Errno) []byte {
	if room < outHeader {
		return nil
	}
	out := binary.NativeEndian.AppendUint32(nil, outHeader)
	out = binary.NativeEndian.AppendUint32(out, uint32(-int32(e)))
	return append(out, request[uniqueAt:uniqueAt+8]...)
}

// begin ends the session before and begins one by its first request. That request writes
// what all others of the session read, so no other is worked on at the same time.
func (m *mounts) begin(request []byte, room int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != nil {
		m.now.folder.close()
	}
	m.now = m.fresh()
	return m.now.handle(request, room)
}

func (m *mounts) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != nil {
		m.now.folder.close()
		m.now = nil
	}
}
