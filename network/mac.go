package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// gatewayMAC is the gateway's address of every interface with the masquerade
// binding: a guest that migrates to another node finds its gateway unchanged.
const gatewayMAC = "02:00:00:00:00:00"

// MAC is the address of a VMI's interface for which the spec has none. It follows
// from the VMI's UID and the interface's name alone, is locally administered, and
// never the gateway's.
func MAC(instance types.UID, iface string) string {
	sum := sha256.Sum256([]byte(string(instance) + "/" + iface))
	// With a bit that is always set the address differs from the gateway's.
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", sum[0]|1, sum[1], sum[2], sum[3], sum[4])
}

// parseMAC reads a MAC address and returns it in the kernel's notation.
func parseMAC(s string) (string, error) {
	b, err := hex.DecodeString(strings.NewReplacer(":", "", "-", "").Replace(s))
	if err != nil || len(b) != 6 || len(s) != 17 {
		return "", errors.New("it is not six bytes in hexadecimal")
	}
	if b[0]&1 != 0 {
		return "", errors.New("it is one for groups")
	}
	if [6]byte(b) == ([6]byte{}) {
		return "", errors.New("it is zero")
	}
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5]), nil
}
