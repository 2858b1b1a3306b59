package share

import (
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// identity says which file of the node's a node is.
type identity struct{ device, inode uint64 }

// node is a file, folder or link that the guest knows.
type node struct {
	id       uint64
	identity identity
	// fd is a descriptor of it that nothing is read or written by.
	fd int
	// kind is its type, such as unix.S_IFREG. It never changes.
	kind uint32
	// lookups is how many lookups of it the guest has not taken back, and uses how
	// many requests use it.
	lookups uint64
	uses    int
}

// opened is a file or folder that the guest has open.
type opened struct {
	fd     int
	uses   int
	closed bool
	mu     sync.Mutex // of the place in a folder
}

// table is what the guest knows and has open. All methods may be called at a time.
type table struct {
	mu         sync.Mutex
	nodes      map[uint64]*node
	byIdentity map[identity]*node
	opened     map[uint64]*opened
	last       uint64
	maxNodes   int
	maxOpen    int
}

// newTable is a table with the root, which the guest knows always. It takes the
// descriptor.
func newTable(root int, stat *unix.Stat_t, c Config) *table {
	t := &table{
		nodes: map[uint64]*node{}, byIdentity: map[identity]*node{}, opened: map[uint64]*opened{},
		last: fuse.FUSE_ROOT_ID, maxNodes: c.MaxNodes, maxOpen: c.MaxOpen,
	}
	t.put(&node{id: fuse.FUSE_ROOT_ID, identity: identityOf(stat), fd: root, kind: unix.S_IFDIR, lookups: 1})
	return t
}

func identityOf(s *unix.Stat_t) identity { return identity{s.Dev, s.Ino} }

func (t *table) put(n *node) { t.nodes[n.id], t.byIdentity[n.identity] = n, n }

// add adds what a descriptor is of, and takes the descriptor.
func (t *table) add(fd int, stat *unix.Stat_t) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byIdentity[identityOf(stat)]; n != nil {
		_ = unix.Close(fd)
		n.lookups++
		return n.id, nil
	}
	if len(t.nodes) >= t.maxNodes {
		_ = unix.Close(fd)
		return 0, syscall.ENFILE
	}
	t.last++
	t.put(&node{id: t.last, identity: identityOf(stat), fd: fd, kind: stat.Mode & unix.S_IFMT, lookups: 1})
	return t.last, nil
}

// forget takes back n lookups of a node.
func (t *table) forget(id, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.nodes[id]; known != nil && id != fuse.FUSE_ROOT_ID {
		known.lookups -= min(n, known.lookups)
		t.drop(known)
	}
}

// drop drops a node that is neither known nor used. t is locked.
func (t *table) drop(n *node) {
	if n.lookups > 0 || n.uses > 0 {
		return
	}
	delete(t.nodes, n.id)
	delete(t.byIdentity, n.identity)
	_ = unix.Close(n.fd)
}

// at does something with a node, which is there until it is done.
func (t *table) at(id uint64, do func(*node) error) error {
	t.mu.Lock()
	n := t.nodes[id]
	if n == nil {
		t.mu.Unlock()
		return syscall.ESTALE
	}
	n.uses++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		n.uses--
		t.drop(n)
	}()
	return do(n)
}

// open adds a descriptor as an open file, and takes the descriptor.
func (t *table) open(fd int) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.opened) >= t.maxOpen {
		_ = unix.Close(fd)
		return 0, syscall.ENFILE
	}
	t.last++
	t.opened[t.last] = &opened{fd: fd}
	return t.last, nil
}

// in does something with an open file, which is open until it is done.
func (t *table) in(handle uint64, do func(*opened) error) error {
	t.mu.Lock()
	o := t.opened[handle]
	if o == nil {
		t.mu.Unlock()
		return syscall.EBADF
	}
	o.uses++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		o.uses--
		o.end()
	}()
	return do(o)
}

// release closes an open file, when nothing uses it any more.
func (t *table) release(handle uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.opened[handle]; o != nil {
		delete(t.opened, handle)
		o.closed = true
		o.end()
	}
}

func (o *opened) end() {
	if o.closed && o.uses == 0 {
		_ = unix.Close(o.fd)
	}
}

// close closes everything. Nothing uses the table any more.
func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.nodes {
		_ = unix.Close(n.fd)
	}
	for _, o := range t.opened {
		_ = unix.Close(o.fd)
	}
	t.nodes, t.byIdentity, t.opened = nil, nil, nil
}
