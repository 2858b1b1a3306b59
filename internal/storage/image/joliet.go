package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// disc is what an ISO 9660 file system is on.
type disc interface {
	io.ReaderAt
	io.WriterAt
}

// joliet mends the Joliet tree of an ISO 9660 file system that go-diskfs 1.9 made: the
// record of a folder names the folder of the tree with short names, not the one of its
// own tree, so that Windows finds no long name in it. The path table is right.
func joliet(f disc) error {
	table, err := jolietFolders(f)
	if err != nil || len(table) == 0 {
		return err
	}
	for _, folder := range table[1:] {
		if folder.parent < 1 || folder.parent > len(table) {
			return fmt.Errorf("folder %q of the Joliet tree has parent %d of %d", folder.name, folder.parent, len(table))
		}
		if err := refer(f, table[folder.parent-1].at, folder); err != nil {
			return err
		}
	}
	return nil
}

// jolietFolder is a folder in the path table of the Joliet tree.
type jolietFolder struct {
	name []byte
	// at is the first byte of its records.
	at int64
	// parent is the number of the folder that it is in, from 1.
	parent int
}

// The volume descriptors, and where they name the path table.
const (
	firstDescriptor     = 16
	maxDescriptors      = 16
	supplementary       = 2
	lastDescriptor      = 255
	pathTableSizeAt     = 132
	pathTableLocationAt = 140
	maxPathTable        = 1 << 20
)

// jolietFolders is the path table of the Joliet tree. Nil: there is no such tree.
func jolietFolders(f io.ReaderAt) ([]jolietFolder, error) {
	block := make([]byte, isoBlock)
	for n := range int64(maxDescriptors) {
		if _, err := f.ReadAt(block, (firstDescriptor+n)*isoBlock); err != nil {
			return nil, fmt.Errorf("read a volume descriptor: %w", err)
		}
		if block[0] == lastDescriptor {
			break
		}
		if block[0] != supplementary {
			continue
		}
		size := binary.LittleEndian.Uint32(block[pathTableSizeAt:])
		if size > maxPathTable {
			return nil, fmt.Errorf("the path table of the Joliet tree has %d bytes", size)
		}
		table := make([]byte, size)
		if _, err := f.ReadAt(table, int64(binary.LittleEndian.Uint32(block[pathTableLocationAt:]))*isoBlock); err != nil {
			return nil, fmt.Errorf("read the path table of the Joliet tree: %w", err)
		}
		return parsePathTable(table), nil
	}
	return nil, nil
}

// parsePathTable reads entries of the length of a name, the location, the number of the
// parent, the name, and a byte if the length is odd.
func parsePathTable(table []byte) []jolietFolder {
	const header = 8
	var all []jolietFolder
	for len(table) > header {
		n := int(table[0])
		if n == 0 || header+n > len(table) {
			break
		}
		all = append(all, jolietFolder{
			name:   table[header : header+n],
			at:     int64(binary.LittleEndian.Uint32(table[2:])) * isoBlock,
			parent: int(binary.LittleEndian.Uint16(table[6:])),
		})
		table = table[min(header+n+n%2, len(table)):]
	}
	return all
}

// The parts of a folder's record.
const (
	recordLocation = 2
	recordSize     = 10
	recordFlags    = 25
	recordNameSize = 32
	recordName     = 33
	flagFolder     = 2
)

// refer makes the record of the folder, in the one whose records begin at the byte,
// refer to the folder.
func refer(f disc, in int64, folder jolietFolder) error {
	own, err := recordsAt(f, folder.at)
	if err != nil {
		return err
	}
	records, err := recordsAt(f, in)
	if err != nil {
		return err
	}
	for at := 0; at+recordName <= len(records); {
		r := records[at:]
		if r[0] == 0 { // the rest of the block is empty
			at += isoBlock - at%isoBlock
			continue
		}
		n := int(r[recordNameSize])
		if r[recordFlags]&flagFolder != 0 && recordName+n <= len(r) && bytes.Equal(r[recordName:recordName+n], folder.name) {
			both(r[recordLocation:], uint32(folder.at/isoBlock))
			both(r[recordSize:], uint32(len(own)))
			_, err := f.WriteAt(r[:recordName], in+int64(at))
			return err
		}
		at += int(r[0])
	}
	return fmt.Errorf("folder %q of the Joliet tree has no record", folder.name)
}

// recordsAt are the records of the folder whose records begin at the byte. The first
// one is of the folder itself and says how many bytes they have.
func recordsAt(f io.ReaderAt, at int64) ([]byte, error) {
	first := make([]byte, recordName)
	if _, err := f.ReadAt(first, at); err != nil {
		return nil, fmt.Errorf("read a folder of the Joliet tree: %w", err)
	}
	size := binary.LittleEndian.Uint32(first[recordSize:])
	if size == 0 || size > maxPathTable {
		return nil, fmt.Errorf("a folder of the Joliet tree has %d bytes", size)
	}
	all := make([]byte, size)
	if _, err := f.ReadAt(all, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read a folder of the Joliet tree: %w", err)
	}
	return all, nil
}

// both writes a number in the two orders of its bytes that ISO 9660 has of each.
func both(b []byte, n uint32) {
	binary.LittleEndian.PutUint32(b, n)
	binary.BigEndian.PutUint32(b[4:], n)
}
