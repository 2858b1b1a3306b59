//go:build !linux || !(amd64 || arm64)

package kvm

import (
	"errors"
	"time"
)

// code is of the architectures that there is a guest for.
var code []byte

func probe(string, []byte, time.Duration) error {
	return errors.New("there is no guest to try KVM with on this architecture")
}
