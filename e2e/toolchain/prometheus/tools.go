//go:build tools

package prometheus

import _ "github.com/prometheus/prometheus/cmd/prometheus"
