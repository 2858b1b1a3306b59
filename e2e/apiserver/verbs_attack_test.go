package apiserver

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi/client"
)

// issue makes a client certificate of the authority.
func issue(t *testing.T, authority *tls.Certificate, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "front-proxy-client"}, NotBefore: time.Now().Add(-2 * time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, authority.Leaf, key.Public(), authority.PrivateKey.(crypto.Signer))
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// newAuthority is one that no API server knows.
func newAuthority(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "foreign"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// asAdmin are the headers of the aggregator for an administrator of the cluster.
func asAdmin() http.Header {
	return http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters", "system:authenticated"}}
}

// asksUpgrade are the headers that ask for a websocket.
const asksUpgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

// upgraded opens a websocket, whose frames the caller writes and reads.
func (v *verbs) upgraded(t *testing.T, cfg *rest.Config, path string) (net.Conn, *bufio.Reader, *http.Response, error) {
	t.Helper()
	for began := time.Now(); ; {
		c := v.dial(t)
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: k\r\nAuthorization: Bearer "+cfg.BearerToken+"\r\n"+asksUpgrade+"\r\n"); err != nil {
			return nil, nil, nil, err
		}
		r := bufio.NewReader(c)
		a, err := http.ReadResponse(r, nil)
		if err != nil || a.StatusCode != http.StatusServiceUnavailable {
			return c, r, a, err
		}
		b, err := io.ReadAll(a.Body)
		if a.Body = io.NopCloser(bytes.NewReader(b)); strings.TrimSpace(string(b)) != unavailable || !again(began) {
			return c, r, a, err
		}
	}
}

const verbsPort = "https://10.200.0.1:8443"

// Every pod of the cluster reaches the port of virt-controller.
func TestAttackForgedHeadersAtThePortOfVirtControllerAreRefused(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	ns := v.namespace(t)
	front := v.pair(t, "front-proxy-ca")
	// send tries a verb and a stream, which must be refused alike.
	send := func(c *tls.Certificate) (int, metav1.Status) {
		h := v.at(8443, c)
		code, s := sendTo(t, h, verbsPort+verbPath(ns, "virtualmachineinstances/a/reset"), "PUT", "", asAdmin())
		streamed, _ := sendTo(t, h, verbsPort+verbPath(ns, "virtualmachineinstances/a/vnc/screenshot"), "GET", "", asAdmin())
		require.Equal(t, code, streamed)
		return code, s
	}
	calls := v.guests.called()
	for name, c := range map[string]*tls.Certificate{
		"no certificate":       nil,
		"of another authority": issue(t, newAuthority(t), nil),
		"of another name":      issue(t, front, func(c *x509.Certificate) { c.Subject.CommonName = "kubelet" }),
		"that has ended":       issue(t, front, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }),
		"of a server":          issue(t, front, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }),
		"of a user":            v.pair(t, "admin"),
		"of the cluster's own": issue(t, v.pair(t, "ca"), nil),
		"of a kubelet": issue(t, v.pair(t, "ca"), func(c *x509.Certificate) {
			c.Subject = pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}}
		}),
		"of the API server":     v.pair(t, "apiserver-kubelet-client"),
		"of its own, by itself": newAuthority(t),
	} {
		code, s := send(c)
		require.Equal(t, http.StatusUnauthorized, code, "%s: %s", name, s.Message)
		require.Equal(t, metav1.StatusReasonUnauthorized, s.Reason)
	}
	require.Equal(t, calls, v.guests.called())
	code, s := send(v.pair(t, "front-proxy-client"))
	require.Equal(t, http.StatusOK, code, "the aggregator itself: %s", s.Message)
}

// answers sends bytes to the API server, and a request that closes the connection, and
// returns the codes of all answers.
func (v *verbs) answers(t *testing.T, text string) (codes []int) {
	t.Helper()
	eventually(t, func() error {
		if codes = v.answersOnce(t, text); slices.Contains(codes, http.StatusServiceUnavailable) {
			return fmt.Errorf("the API server takes the verbs for gone: %v", codes)
		}
		return nil
	})
	return codes
}

// answersOnce is answers for an API server that reaches virt-controller, or answers 503.
func (v *verbs) answersOnce(t *testing.T, text string) (codes []int) {
	t.Helper()
	c := v.dial(t)
	defer func() { _ = c.Close() }()
	require.NoError(t, c.SetDeadline(time.Now().Add(timeout)))
	_, err := io.WriteString(c, text+"GET /closes HTTP/1.1\r\nHost: kubernetes\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	r := bufio.NewReader(c)
	for {
		a, err := http.ReadResponse(r, nil) //nolint:bodyclose // a websocket has none
		if err != nil {
			return codes
		}
		codes = append(codes, a.StatusCode)
		if a.StatusCode == http.StatusSwitchingProtocols {
			return codes
		}
		_, _ = io.Copy(io.Discard, a.Body)
		_ = a.Body.Close()
	}
}

func TestAttackHeadersAndPathsOfAClientGiveItNoRight(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	ns, other := v.namespace(t), v.namespace(t)
	view := v.user(t, ns, "view")
	request := func(method, path, headers, body string) string {
		return method + " " + path + " HTTP/1.1\r\nHost: kubernetes\r\nAuthorization: Bearer " + view.BearerToken + "\r\n" + headers + "\r\n" + body
	}
	console, reset, may := verbPath(ns, "virtualmachineinstances/a/console"), verbPath(ns, "virtualmachineinstances/a/reset"), verbPath(ns, "virtualmachineinstances/a/userlist")
	theirs := "virtualmachineinstances/a/console"
	require.Equal(t, []int{http.StatusConflict, http.StatusForbidden}, v.answers(t, request("GET", may, "", "")), "what the user may")
	calls := v.guests.called()
	inner := "PUT " + reset + " HTTP/1.1\r\nHost: kubernetes\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\nContent-Length: 0\r\n\r\n"
	for name, text := range map[string]string{
		"a user":                   request("GET", console, asksUpgrade+"X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n", ""),
		"a group":                  request("GET", console, asksUpgrade+"X-Remote-Group: system:masters\r\n", ""),
		"extra facts":              request("GET", console, asksUpgrade+"X-Remote-Extra-Scopes: admin\r\nX-Remote-Uid: 0\r\n", ""),
		"low lines":                request("GET", console, asksUpgrade+"X_Remote_User: admin\r\nX_Remote_Group: system:masters\r\n", ""),
		"two users":                request("GET", console, asksUpgrade+"X-Remote-User: admin\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n", ""),
		"headers to be dropped":    request("GET", console, "Connection: X-Remote-User, X-Remote-Group, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nX-Remote-User: admin\r\n", ""),
		"another user":             request("GET", console, asksUpgrade+"Impersonate-User: admin\r\n", ""),
		"another group":            request("GET", console, asksUpgrade+"Impersonate-User: admin\r\nImpersonate-Group: system:masters\r\n", ""),
		"a length and chunks":      request("PUT", reset, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+inner),
		"two lengths":              request("PUT", reset, "Content-Length: 0\r\nContent-Length: 5\r\n", inner),
		"a body of a GET":          request("GET", may, fmt.Sprintf("Content-Length: %d\r\n", len(inner)), inner),
		"chunks of a GET":          request("GET", may, "Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner)),
		"folded lines":             request("GET", console, asksUpgrade+"X-Other: a\r\n X-Remote-User: admin\r\n", ""),
		"a step back":              request("GET", verbPath(ns, "virtualmachineinstances/a/userlist/../console"), asksUpgrade, ""),
		"a step back, escaped":     request("GET", verbPath(ns, "virtualmachineinstances/a/userlist%2f..%2fconsole"), asksUpgrade, ""),
		"dots, escaped":            request("GET", verbPath(ns, "virtualmachineinstances/a/userlist/%2e%2e/console"), asksUpgrade, ""),
		"to another namespace":     request("GET", verbPath(ns, "virtualmachineinstances/a/userlist/../../../../"+other+"/"+theirs), asksUpgrade, ""),
		"as a name":                request("GET", verbPath(ns, "virtualmachineinstances/..%2f..%2f..%2f"+other+"%2fvirtualmachineinstances%2fa/userlist"), asksUpgrade, ""),
		"as a namespace":           request("GET", verbPath(ns+"%2f..%2f"+other, theirs), asksUpgrade, ""),
		"doubled slashes":          request("GET", strings.ReplaceAll(verbPath(ns, "virtualmachineinstances/a/userlist"), "/", "//")+"//console", asksUpgrade, ""),
		"a slash at the end":       request("GET", console+"/", asksUpgrade, ""),
		"a path of more":           request("GET", may+"/console", asksUpgrade, ""),
		"the old version":          request("GET", strings.Replace(console, "/v1/", "/v1alpha3/", 1), asksUpgrade, ""),
		"a version of none":        request("GET", strings.Replace(console, "/v1/", "/v2/", 1), asksUpgrade, ""),
		"a path of another server": request("GET", "/api/v1/namespaces/"+home+"/services/https:virt-controller:443/proxy"+console, asksUpgrade, ""),
		"a URL as the path":        request("GET", verbsPort+console, asksUpgrade, ""),
		"a method of none":         request("PROPFIND", console, asksUpgrade, ""),
		"another method":           request("GET", reset, "X-HTTP-Method-Override: PUT\r\n", ""),
	} {
		began := time.Now()
		codes := v.answers(t, text)
		t.Logf("%s: %v after %s", name, codes, time.Since(began))
		for _, code := range codes {
			// A conflict is the answer to what the user may, that the guest has no agent.
			if name == "a body of a GET" || name == "chunks of a GET" {
				require.Contains(t, []int{http.StatusConflict, http.StatusForbidden}, code, name)
				continue
			}
			require.Contains(t, []int{301, 307, 308, 400, 401, 403, 404, 405}, code, name)
		}
	}
	require.Equal(t, calls, v.guests.called(), "no handler was called")
}

func TestAttackTheStreamsOfOneCallerKeepNoOtherOut(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	ns, other := v.namespace(t), v.namespace(t)
	edit, honest := v.user(t, ns, "edit"), v.user(t, other, "edit")
	// Of a VMI no more than 20 are open, and of a namespace no more than are free of 1,000.
	guests, each, most := 6, 25, 120
	if testenv.Long() {
		guests, each, most = 50, 20, 500
	}
	for i := range guests {
		v.guest(t, ns, fmt.Sprintf("g%d", i))
	}
	began := time.Now()
	var refused atomic.Int64
	var mu sync.Mutex
	var open, peak int // streams
	var wg sync.WaitGroup
	work := make(chan string)
	for range 8 {
		wg.Go(func() {
			for name := range work {
				c, r, a, err := v.upgraded(t, edit, verbPath(ns, "virtualmachineinstances/"+name+"/console")) //nolint:bodyclose // a websocket has none
				switch {
				case err != nil:
					t.Error(err)
				case a.StatusCode == http.StatusSwitchingProtocols:
					count := func(n int) {
						mu.Lock()
						defer mu.Unlock()
						open += n
						peak = max(peak, open)
					}
					count(1)
					go func() { // it answers pings, and is not cut for as long as the test lasts
						for frame := make([]byte, 2); ; {
							if _, err := io.ReadFull(r, frame); err != nil {
								break
							}
							_, _ = c.Write([]byte{0x8a, 0x80, 0, 0, 0, 0})
						}
						count(-1)
					}()
				case a.StatusCode == http.StatusTooManyRequests:
					refused.Add(1)
				default:
					b, _ := io.ReadAll(io.LimitReader(a.Body, 1000))
					t.Errorf("a stream is answered with %s after %s: %s", a.Status, time.Since(began), b)
				}
			}
		})
	}
	for range each {
		for i := range guests {
			work <- fmt.Sprintf("g%d", i)
		}
	}
	close(work)
	wg.Wait()
	mu.Lock()
	left, atOnce := open, peak
	mu.Unlock()
	t.Logf("after %s %d streams are open, %d were at once, %d were refused; virt-controller has %d MiB", time.Since(began), left, atOnce, refused.Load(), v.memory(t, 8443))
	require.Less(t, v.seats(t), left/4, "streams take no places of a priority level of the API server")
	require.LessOrEqual(t, atOnce, most)
	require.Positive(t, refused.Load())
	require.NoError(t, v.completes(t.Context()))
	eventually(t, func() error { return v.apiServices(t.Context()) })
	c, err := v.console(t, honest, other, "a")
	require.NoError(t, err)
	echoes(t, c)
	require.NoError(t, c.Close())
	require.Less(t, v.memory(t, 8443), 400)
}

func TestAttackRequestsThatAreNotSentToTheEndKeepNoOtherOut(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	ns, other := v.namespace(t), v.namespace(t)
	edit, honest := v.user(t, ns, "edit"), v.user(t, other, "edit")
	began := time.Now()
	for range 100 {
		c := v.dial(t)
		_, err := io.WriteString(c, "PUT "+verbPath(ns, "virtualmachineinstances/a/pause")+" HTTP/1.1\r\nHost: k\r\nAuthorization: Bearer "+edit.BearerToken+"\r\nContent-Length: 100\r\n\r\n{")
		require.NoError(t, err)
	}
	refused := 0
	for range 5 {
		code, s := v.ask(t, honest, "PUT", verbPath(other, "virtualmachineinstances/a/reset"), "")
		require.Equal(t, http.StatusOK, code, s.Message)
		if code, _ := v.ask(t, edit, "PUT", verbPath(ns, "virtualmachineinstances/a/reset"), ""); code == http.StatusTooManyRequests {
			refused++
		}
	}
	require.NoError(t, v.completes(t.Context()))
	eventually(t, func() error { return v.apiServices(t.Context()) })
	t.Logf("after %s; own requests refused: %d of 5", time.Since(began), refused)
	// virt-controller keeps none for longer than a request may take, while they are open.
	eventually(t, func() error {
		if code, s := v.ask(t, edit, "PUT", verbPath(ns, "virtualmachineinstances/a/reset"), ""); code != http.StatusOK {
			return fmt.Errorf("the requests take all places: %s", s.Message)
		}
		return nil
	})
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestAttackBodiesFramesAndAnswersWithoutEnd(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	ns := v.namespace(t)
	edit, admin := v.user(t, ns, "edit"), v.user(t, ns, "admin")
	v.guest(t, ns, "endless")
	kept, err := v.console(t, edit, ns, "a")
	require.NoError(t, err)
	defer func() { _ = kept.Close() }()
	t.Run("a body", func(t *testing.T) {
		for _, path := range []string{"virtualmachineinstances/a/pause", "expand-vm-spec"} {
			var body unending
			r, err := http.NewRequestWithContext(t.Context(), "PUT", v.config.Host+verbPath(ns, path), io.MultiReader(strings.NewReader(`{"a":"`), &body))
			require.NoError(t, err)
			r.Header.Set("Authorization", "Bearer "+edit.BearerToken)
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(v.config.CAData)
			c := http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
			a, err := c.Do(r)
			if err == nil {
				require.GreaterOrEqual(t, a.StatusCode, 400)
				_ = a.Body.Close()
			}
			require.False(t, isTimeout(err), "%v", err)
			t.Logf("%s: %d bytes were sent", path, body.sent.Load())
			require.Less(t, body.sent.Load(), int64(256<<20), "it is refused for its size, and not for its time")
		}
	})
	t.Run("a body that stands for more than it is", func(t *testing.T) {
		bomb := "a: &a " + strings.Repeat("x", 3<<10) + "\nb: [" + strings.Repeat("*a,", 1<<10) + "]"
		code, s := v.ask(t, edit, "PUT", verbPath(ns, "virtualmachineinstances/a/pause"), bomb)
		require.Equal(t, http.StatusBadRequest, code)
		require.Contains(t, s.Message, "without the characters & and *")
		var wg sync.WaitGroup
		object := `{"spec":{"template":{"spec":{"volumes":[` + strings.Repeat("{},", 300_000) + "{}]}}}}"
		for range 20 {
			wg.Go(func() {
				if code, _ := v.ask(t, edit, "PUT", verbPath(ns, "expand-vm-spec"), object); code != 400 && code != 429 && code != 503 {
					t.Errorf("a large object is answered with %d", code)
				}
			})
		}
		wg.Wait()
	})
	for name, frames := range map[string][]byte{
		"a frame of negative length":  binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, 1<<63),
		"a frame that is not masked":  {0x82, 5, 'h', 'e', 'l', 'l', 'o'},
		"a control frame of 64 KiB":   append([]byte{0x89, 0xfe, 0xff, 0xff}, make([]byte, 4+0xffff)...),
		"a frame of an unknown kind":  {0x8f, 0x80, 0, 0, 0, 0},
		"reserved bits":               {0xf2, 0x80, 0, 0, 0, 0},
		"a fragment without its head": {0x80, 0x80, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, r, a, err := v.upgraded(t, edit, verbPath(ns, "virtualmachineinstances/endless/console")) //nolint:bodyclose // a websocket has none
			require.NoError(t, err)
			require.Equal(t, http.StatusSwitchingProtocols, a.StatusCode)
			// Its end may come before all has been written.
			_, _ = c.Write(frames)
			require.NoError(t, c.SetReadDeadline(time.Now().Add(timeout)))
			_, err = io.Copy(io.Discard, r)
			require.False(t, isTimeout(err), "the stream ends: %v", err)
		})
	}
	t.Run("fragments", func(t *testing.T) {
		c, _, _, err := v.upgraded(t, edit, verbPath(ns, "virtualmachineinstances/endless/console")) //nolint:bodyclose // a websocket has none
		require.NoError(t, err)
		_ = c.SetWriteDeadline(time.Now().Add(3 * time.Second))
		part := append([]byte{0x00, 0xfe, 0xff, 0xff, 0, 0, 0, 0}, make([]byte, 0xffff)...)
		_, err = c.Write(append([]byte{0x02, 0x80}, 0, 0, 0, 0))
		for i := 0; err == nil && i < 1000; i++ {
			_, err = c.Write(part)
		}
		require.Error(t, err, "64 MiB in one message, whose echo is not read, are not taken")
	})
	t.Run("an answer", func(t *testing.T) {
		code, s := v.ask(t, edit, "PUT", verbPath(ns, "virtualmachineinstances/endless/reset"), "")
		require.Equal(t, http.StatusOK, code, "what a launcher answers to a reset is not read: %s", s.Message)
		c, err := client.New(admin)
		require.NoError(t, err)
		began := time.Now()
		_, err = c.VirtualMachineInstances(ns).Screenshot(t.Context(), "endless")
		require.Error(t, err)
		require.Less(t, time.Since(began), timeout)
	})
	echoes(t, kept)
	t.Logf("virt-controller has %d MiB", v.memory(t, 8443))
	require.Less(t, v.memory(t, 8443), 500)
}

// unending is a body without an end.
type unending struct{ sent atomic.Int64 }

func (u *unending) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	u.sent.Add(int64(len(b)))
	return len(b), nil
}

func TestAStreamEndsWithItsVMIAndTheNextIsNotFound(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	ns := v.namespace(t)
	edit := v.user(t, ns, "edit")
	c, err := v.console(t, edit, ns, "a")
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	echoes(t, c)
	require.NoError(t, v.vmis.VirtualMachineInstances(ns).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	v.guests.stop(ns + "/a") // the launcher ends
	own, err := client.New(v.asController())
	require.NoError(t, err)
	_, err = own.VirtualMachineInstances(ns).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_ = c.SetReadDeadline(time.Now().Add(timeout)) // it may have ended already
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = v.console(t, edit, ns, "a")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Zero(t, v.guests.streams(ns+"/a"))
}

func TestAttackTheTrustInTheAggregatorFollowsItsConfigMap(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	ns := v.namespace(t)
	foreign := newAuthority(t)
	stranger := v.at(8443, issue(t, foreign, nil))
	code := func() int {
		c, _ := sendTo(t, stranger, verbsPort+verbPath(ns, "virtualmachineinstances/a/reset"), "PUT", "", asAdmin())
		return c
	}
	require.Equal(t, http.StatusUnauthorized, code())
	maps := v.kube.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	trust := func(change func(*corev1.ConfigMap)) {
		eventually(t, func() error { // the API server writes it too
			m, err := maps.Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
			require.NoError(t, err)
			change(m)
			_, err = maps.Update(t.Context(), m, metav1.UpdateOptions{})
			return err
		})
	}
	before, err := maps.Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	require.NoError(t, err)
	const key = "requestheader-client-ca-file"
	trust(func(m *corev1.ConfigMap) {
		m.Data[key] += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: foreign.Leaf.Raw}))
	})
	awaitCode := func(want int) {
		eventually(t, func() error {
			if got := code(); got != want {
				return fmt.Errorf("the answer is %d, not %d", got, want)
			}
			return nil
		})
	}
	awaitCode(http.StatusOK)
	trust(func(m *corev1.ConfigMap) { m.Data[key] = before.Data[key] })
	awaitCode(http.StatusUnauthorized)
	own, s := sendTo(t, v.at(8443, v.pair(t, "front-proxy-client")), verbsPort+verbPath(ns, "virtualmachineinstances/a/reset"), "PUT", "", asAdmin())
	require.Equal(t, http.StatusOK, own, s.Message)
}

func TestAStreamEndsWithItsVirtControllerAndTheNextWorks(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	ns := v.namespace(t)
	edit := v.user(t, ns, "edit")
	c, err := v.console(t, edit, ns, "a")
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	echoes(t, c)
	require.NoError(t, v.start(t.Context(), 8444))
	v.kill(8443)
	_ = c.SetReadDeadline(time.Now().Add(timeout)) // it may have ended already
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	eventually(t, func() error { // until the API server has read that the first is gone
		next, err := v.console(t, edit, ns, "a")
		if err != nil {
			return err
		}
		defer func() { _ = next.Close() }()
		echoes(t, next)
		return nil
	})
	eventually(t, func() error {
		if n := v.guests.streams(ns + "/a"); n > 0 {
			return fmt.Errorf("%d streams are open at the handler", n)
		}
		return nil
	})
	require.NoError(t, v.start(t.Context(), 8443))
	v.kill(8444)
	require.NoError(t, v.available(t.Context()))
}
