package browser

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

// Browser is a headless browser with one page. Its methods are for one goroutine.
type Browser struct {
	in      io.WriteCloser
	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	// session is the page.
	session string
}

// waiting is how long the browser may take. On a busy host it takes more than a minute to
// start its processes.
const waiting = 5 * time.Minute

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Open starts a browser, which ends with the test, and opens the URL. It returns when the
// page is loaded. Without Chromium the test is skipped, see [testenv.Program].
func Open(t *testing.T, url string) *Browser {
	t.Helper()
	program := testenv.Program(t, "chromium")
	theirIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, theirOut, err := os.Pipe()
	require.NoError(t, err)
	// The sandbox of the browser needs user namespaces or an ordinary user; it gets our
	// page alone.
	c := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-extensions", "--window-size=1200,1000", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	c.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	log := &tail{}
	c.Stderr = log
	require.NoError(t, c.Start())
	_, _ = theirIn.Close(), theirOut.Close()
	b := &Browser{in: in, waiting: map[int]chan answer{}}
	var read sync.WaitGroup
	read.Go(func() { b.read(out) })
	t.Cleanup(func() {
		b.session = ""
		if _, err := b.call("Browser.close", nil); err != nil {
			_ = c.Process.Kill()
		}
		_ = c.Wait()
		_, _ = in.Close(), out.Close()
		read.Wait()
		if t.Failed() {
			t.Logf("the browser wrote:\n%s", log)
		}
	})
	var target struct{ TargetID, SessionID string }
	const blank = "about:blank"
	b.must(t, &target, "Target.createTarget", map[string]any{"url": blank})
	b.must(t, &target, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = target.SessionID
	var page struct{ ErrorText string }
	b.must(t, &page, "Page.navigate", map[string]any{"url": url})
	require.Empty(t, page.ErrorText, url)
	b.Until(t, "complete", "location.href === '"+blank+"' ? 'not yet' : document.readyState")
	return b
}

// read delivers the answers.
func (b *Browser) read(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			break
		}
		var a answer
		if json.Unmarshal(line[:len(line)-1], &a) != nil || a.ID == 0 {
			continue // an event
		}
		b.mu.Lock()
		if w := b.waiting[a.ID]; w != nil {
			w <- a
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.waiting {
		close(w)
	}
	b.waiting = nil
}

// call calls a method of the browser, or of the page once it is open.
func (b *Browser) call(method string, params any) (json.RawMessage, error) {
	b.mu.Lock()
	if b.waiting == nil {
		b.mu.Unlock()
		return nil, errors.New("the browser has ended")
	}
	b.last++
	id, w := b.last, make(chan answer, 1)
	b.waiting[id] = w
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case a, ok := <-w:
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: the browser has ended", method)
		case a.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		b.mu.Lock()
		delete(b.waiting, id)
		b.mu.Unlock()
		return a.Result, nil
	case <-time.After(waiting):
		return nil, fmt.Errorf("%s: no answer within %s", method, waiting)
	}
}

// must is call for what must work.
func (b *Browser) must(t *testing.T, into any, method string, params any) {
	t.Helper()
	raw, err := b.call(method, params)
	require.NoError(t, err)
	if into != nil {
		require.NoError(t, json.Unmarshal(raw, into))
	}
}

// Eval is the value of an expression of JavaScript in the page, as text. What it throws is an
// error. A promise is waited for, five minutes at most.
func (b *Browser) Eval(expression string) (string, error) {
	raw, err := b.call("Runtime.evaluate", map[string]any{"expression": "Promise.resolve(" + expression + ").then(String)", "returnByValue": true, "awaitPromise": true})
	if err != nil {
		return "", err
	}
	var v struct {
		Result           struct{ Value string }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", err
	}
	if e := v.ExceptionDetails; e != nil {
		return "", errors.New(e.Exception.Description)
	}
	return v.Result.Value, nil
}

// Until waits until the expression has the value, five minutes at most.
func (b *Browser) Until(t *testing.T, want, expression string) {
	t.Helper()
	var got string
	var err error
	for end := time.Now().Add(waiting); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got, err = b.Eval(expression); err == nil && got == want {
			return
		}
	}
	text, _ := b.Eval("document.body.innerText")
	require.Failf(t, "the page does not become what it should", "%s is %q (%v) and not %q; the page has the text:\n%s", expression, got, err, want, text)
}

// Press presses keys: letters from a to z, and Enter for a line feed.
func (b *Browser) Press(t *testing.T, text string) {
	t.Helper()
	for _, k := range text {
		key := map[string]any{"type": "keyDown", "key": string(k), "text": string(k), "code": "Key" + string(k-'a'+'A'), "windowsVirtualKeyCode": k - 'a' + 'A'}
		switch {
		case k == '\n':
			key = map[string]any{"type": "keyDown", "key": "Enter", "text": "\r", "code": "Enter", "windowsVirtualKeyCode": 13}
		case k < 'a' || k > 'z':
			require.Failf(t, "there is no such key", "%q is neither a letter from a to z nor a line feed", k)
		}
		b.must(t, nil, "Input.dispatchKeyEvent", key)
		key["type"] = "keyUp"
		delete(key, "text")
		b.must(t, nil, "Input.dispatchKeyEvent", key)
	}
}

// tail keeps the end of what is written.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, b...)
	l.b = l.b[max(0, len(l.b)-8<<10):]
	return len(b), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}
