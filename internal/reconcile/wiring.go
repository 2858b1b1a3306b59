package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// Missing is the error of a configuration whose required fields are not set. It names
// all of them, for example "controller.Config: set Client, Kube". The values of unset say
// whether the field of that name is not set. Nil: every field is set.
func Missing(config string, unset map[string]bool) error {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(unset)), func(n string) bool { return !unset[n] })
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s: set %s", config, strings.Join(names, ", "))
}

// ErrRunTwice is the error of a Run after the first one.
var ErrRunTwice = errors.New("it has run already: make another one")

// Once is the guard of a Run that is called once. The zero value is ready.
type Once struct{ begun atomic.Bool }

// Begin returns nil for the first call, and after that an error that wraps ErrRunTwice and
// names what was run.
func (o *Once) Begin(what string) error {
	if o.begun.Swap(true) {
		return fmt.Errorf("run the %s: %w", what, ErrRunTwice)
	}
	return nil
}
