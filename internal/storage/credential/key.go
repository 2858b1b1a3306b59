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

	"github.com/podvisor/podvisor/vmi"
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
// in each line that is neither empty nor a comment. A line that would break the format of
// authorized_keys is left out, and each of the first ones is a fault.
func keysOf(secret string, values map[string][]byte) (keys, faults []string) {
	eachLine(secret, values, func(text, where string) {
		switch why := lineFault(text); {
		case why == "":
			keys = append(keys, text)
		case len(faults) < maxFaults:
			faults = append(faults, where+" "+why)
		}
	})
	slices.Sort(keys)
	return slices.Compact(keys), faults
}

// eachLine calls do with each line of the Secret that is neither empty nor a comment, and
// with what names it.
func eachLine(secret string, values map[string][]byte, do func(text, where string)) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		number := 0
		for line := range bytes.Lines(values[name]) {
			number++
			text := string(bytes.TrimSpace(line))
			if text == "" || text[0] == '#' {
				continue
			}
			do(text, fmt.Sprintf("secret %q: key %s, line %d", secret, name, number))
		}
	}
}

// Doubts names the lines of the Secrets that are passed on as they are and are no SSH
// public keys that OpenSSH knows. It names the first ones, and no content.
func Doubts(v *vmi.VirtualMachineInstance, contents Contents) []string {
	var out []string
	seen := map[string]bool{}
	for _, c := range v.Spec.AccessCredentials {
		secret := secretOf(c)
		if c.SSHPublicKey == nil || seen[secret] {
			continue
		}
		seen[secret] = true
		eachLine(secret, contents[secret], func(text, where string) {
			if len(out) < maxFaults && lineFault(text) == "" && !isKey(text) {
				out = append(out, where+" is no SSH public key and is passed on as it is")
			}
		})
	}
	return out
}

// lineFault says why a line cannot be one of authorized_keys.
func lineFault(line string) string {
	if len(line) > MaxKey {
		return fmt.Sprintf("has %d bytes, and a key has at most %d", len(line), MaxKey)
	}
	if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		return "has control characters or is not UTF-8"
	}
	return ""
}

// isKey says that a line is an SSH public key as authorized_keys has it: options, the
// type, the key in base64, a comment.
func isKey(line string) bool {
	words := strings.Fields(line)
	for i := range len(words) - 1 {
		// The key repeats its type, so that nothing in the options is taken for it.
		if blob, err := base64.StdEncoding.DecodeString(words[i+1]); err == nil && typeOf(blob) == words[i] {
			return true
		}
	}
	return false
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
