package vmi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestTheTextOfAFaultIsOneLineWithoutTheWordOfItsClass(t *testing.T) {
	first, second := fmt.Errorf("disk a is no block device: %w", vmi.ErrInvalid), fmt.Errorf("disk b has no bus: %w", vmi.ErrInvalid)
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"at the end":   {first, "disk a is no block device"},
		"at the start": {fmt.Errorf("%w: disk a", vmi.ErrInvalid), "disk a"},
		"not there":    {errors.New("no such disk"), "no such disk"},
		"several":      {errors.Join(first, second), "disk a is no block device; disk b has no bus"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, vmi.FaultText(tt.err)) })
	}
}
