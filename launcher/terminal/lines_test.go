package terminal

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAWriterThatIsStalledStopsNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		l := &lines{out: w, queue: make(chan line, queued)}
		done := make(chan struct{})
		go func() { l.run(); close(done) }()
		begun := time.Now()
		for i := range 3 * queued {
			n, err := fmt.Fprintf(l, "line %d\n", i)
			require.NoError(t, err)
			require.Positive(t, n)
		}
		require.Equal(t, lineTime, time.Since(begun), "only the first line is waited for")

		read := make(chan string)
		go func() {
			b, _ := io.ReadAll(r)
			read <- string(b)
		}()
		synctest.Wait()
		begun = time.Now()
		_, _ = io.WriteString(l, "last\n")
		require.Zero(t, time.Since(begun))
		close(l.queue)
		<-done
		require.NoError(t, w.Close())
		text := <-read
		require.True(t, strings.HasPrefix(text, "line 0\nline 1\n"), text)
		require.True(t, strings.HasSuffix(text, "\nlast\n"), "the reader takes lines again")
	})
}
