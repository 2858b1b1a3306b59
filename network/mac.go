package network

import (
	"crypto/sha256"
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

// kernelMAC is a MAC address of a spec in the kernel's notation.
func kernelMAC(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", ":")) }
