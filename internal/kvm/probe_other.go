//go:build !(linux && amd64)

package kvm

import (
	"errors"
	"time"
)

func probe(string, []byte, time.Duration) error {
	return errors.New("there is no guest to try KVM with on this architecture")
}
