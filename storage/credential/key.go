package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxKey is the longest SSH public key in bytes, with its options and comment.
	// OpenSSH reads lines of 8 KiB.
	MaxKey = 8 << 10
	// MaxKeys is how many keys one user may have.
	MaxKeys = 256
	// maxFaults is how many wrong lines of a Secret are faults.
	maxFaults = 5
)

// keysOf are the SSH public keys in the values of a Secret, sorted and each once: one
// in each line that is neither empty nor a comment. A line that is no key is left out,
// and each of the first ones is a fault.
func keysOf(secret string, values map[string][]byte) (keys, faults []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		number := 0
		for line := range bytes.Lines(values[name]) {
			number++
			text := string(bytes.TrimSpace(line))
			if text == "" || text[0] == '#' {
				continue
			}
			switch why := keyFault(text); {
			case why == "":
				keys = append(keys, text)
			case len(faults) < maxFaults:
				faults = append(faults, fmt.Sprintf("secret %q: key %s, line %d %s", secret, name, number, why))
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), faults
}

// keyFault says why a line is no SSH public key as authorized_keys has it: options,
// the type, the key in base64, a comment.
func keyFault(line string) string {
	if len(line) > MaxKey {
		return fmt.Sprintf("has %d bytes, and a key has at most %d", len(line), MaxKey)
	}
	if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		return "has control characters or is not UTF-8"
	}
	words := strings.Fields(line)
	for i := range len(words) - 1 {
		// The key repeats its type, so that nothing in the options is taken for it.
		if blob, err := base64.StdEncoding.DecodeString(words[i+1]); err == nil && typeOf(blob) == words[i] {
			return ""
		}
	}
	return "is no SSH public key"
}

// typeOf is the type that an SSH key in its binary form begins with, or empty.
func typeOf(blob []byte) string {
	if len(blob) <= 4 {
		return ""
	}
	n := binary.BigEndian.Uint32(blob)
	if n == 0 || uint64(n)+4 >= uint64(len(blob)) {
		return ""
	}
	return string(blob[4 : 4+n])
}
