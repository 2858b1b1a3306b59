package browser_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/browser"
)

// pressed is a page that has the keys that were pressed as its title.
const pressed = "data:text/html,<body><script>document.onkeydown=e=>document.title+=e.key+'.'</script>"

func TestWhatIsPressedReachesThePage(t *testing.T) {
	b := browser.Open(t, pressed)
	b.Press(t, "ab\n")
	b.Until(t, "a.b.Enter.", "document.title")
	_, err := b.Eval("missing()")
	require.ErrorContains(t, err, "missing is not defined")
	got, err := b.Eval("Promise.resolve(6*7)")
	require.NoError(t, err)
	require.Equal(t, "42", got)
}
