package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// get prints a page, after the status and, with TLS, the names in the certificate.
func get(out io.Writer, url string) error {
	client := http.Client{Timeout: pageLimit, Transport: &http.Transport{
		// Whose certificate it is, the test looks at.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Fprintln(out, resp.Status)
	if resp.TLS != nil {
		fmt.Fprintln(out, resp.TLS.PeerCertificates[0].DNSNames)
	}
	_, err = io.Copy(out, resp.Body)
	return err
}

// ask prints what the other end says of who asked. Limits are those of the connection and of
// the answer.
func ask(out io.Writer, network, address string, toConnect, toAnswer time.Duration) error {
	c, err := net.DialTimeout(network, address, toConnect)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(toAnswer)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, "who\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, answer)
	return err
}

// connect makes connections one after another. None may be lost, however long it takes.
func connect(out io.Writer, address string, count int) error {
	var errs []error
	began := time.Now()
	for range count {
		if err := ask(io.Discard, "tcp", address, time.Minute, time.Minute); err != nil {
			errs = append(errs, err)
		}
	}
	fmt.Fprintf(out, "%d of %d in %d ms\n", count-len(errs), count, time.Since(began).Milliseconds())
	return errors.Join(errs...)
}

// stream is an endless sequence of bytes, the same each time.
type stream struct{ state uint64 }

// Read fills p with the next bytes.
func (s *stream) Read(p []byte) (int, error) {
	for i := range p {
		s.state = s.state*6364136223846793005 + 1442695040888963407
		p[i] = byte(s.state >> 56)
	}
	return len(p), nil
}

// send sends a stream for so long and compares its length and checksum with the other end's.
func send(out io.Writer, address string, d time.Duration) error {
	c, err := net.DialTimeout("tcp", address, limit(address))
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "sum\n"); err != nil {
		return err
	}
	own, block, s, n := sha256.New(), make([]byte, 64<<10), stream{}, 0
	began := time.Now()
	for time.Since(began) < d {
		_, _ = s.Read(block)
		_, _ = own.Write(block)
		if _, err := c.Write(block); err != nil {
			return err
		}
		n += len(block)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	theirs, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("%d %x\n", n, own.Sum(nil)); theirs != want {
		return fmt.Errorf("the other end got %q and not %q", theirs, want)
	}
	_, err = fmt.Fprintf(out, "%d bytes in %d ms\n", n, time.Since(began).Milliseconds())
	return err
}

// large sends a datagram of n bytes that may not be fragmented on its way, and waits for
// as much back.
func large(out io.Writer, address string, n int) error {
	c, err := (&net.Dialer{Control: whole.Control}).Dial("udp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	if _, err := c.Write(make([]byte, n)); err != nil {
		return err
	}
	got, err := c.Read(make([]byte, n+1))
	if err != nil {
		return err
	}
	if got != n {
		return fmt.Errorf("%d bytes came back", got)
	}
	_, err = fmt.Fprintf(out, "%d bytes\n", n)
	return err
}

// hold keeps one connection open for as long as the other end answers.
func hold(address, file string) error {
	c, err := net.DialTimeout("tcp", address, limit(address))
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "echo\n"); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for n := 1; ; n++ {
		line := fmt.Sprintf("%d\n", n)
		if _, err := io.WriteString(c, line); err != nil {
			return err
		}
		back, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if back != line {
			return fmt.Errorf("%q came back as %q", line, back)
		}
		if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// resolve prints the addresses of a name.
func resolve(out io.Writer, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit(name))
	defer cancel()
	all, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, all)
	return err
}

// limit is how long a connection to the address may take. A resolver asks again when it has
// had no answer for five seconds (resolv.conf(5)): one question that is lost is no failure.
func limit(address string) time.Duration {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if net.ParseIP(host) == nil {
		return 3 * answerLimit
	}
	return answerLimit
}
