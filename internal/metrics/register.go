package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers all of the collectors, or none with an error that names what is
// registered already. It returns what takes them back. With a nil registry it does nothing.
func Register(reg prometheus.Registerer, all ...prometheus.Collector) (unregister func(), err error) {
	if reg == nil {
		return func() {}, nil
	}
	var done []prometheus.Collector
	unregister = func() {
		for _, c := range done {
			reg.Unregister(c)
		}
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			unregister()
			if errors.As(err, &prometheus.AlreadyRegisteredError{}) {
				err = fmt.Errorf("%w: give each its own labels by prometheus.WrapRegistererWith", err)
			}
			return nil, fmt.Errorf("register metrics: %w", err)
		}
		done = append(done, c)
	}
	return unregister, nil
}
