package browser_test

import (
	"testing"

	"github.com/podvisor/podvisor/internal/browser"
)

func ExampleOpen() {
	_ = func(t *testing.T) {
		b := browser.Open(t, "data:text/html,<p>hello")
		b.Until(t, "hello", "document.querySelector('p').textContent")
	}
	// Output:
}
