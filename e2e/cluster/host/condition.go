package host

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// A condition is a string that says what must hold before a program starts, or
// when it does its work:
//
//	done:NAME       the program NAME of this host has ended well
//	unix:PATH       a process listens on the socket
//	http:URL        the URL answers 200
//	https:CA:URL    the URL answers 200 with a certificate that the file CA signed
type condition string

// poll is how often conditions are looked at.
const poll = 25 * time.Millisecond

// await returns when the condition holds or ctx ends.
func (s *supervisor) await(ctx context.Context, c condition) error {
	holds, err := s.check(c)
	if err != nil {
		return err
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// check turns a condition into a function.
func (s *supervisor) check(c condition) (func() bool, error) {
	kind, target, _ := strings.Cut(string(c), ":")
	switch kind {
	case "done":
		return func() bool { return s.board.state(target) == Done }, nil
	case "unix":
		return func() bool { return listens("unix", target) }, nil
	case "http":
		return answers(nil, target), nil
	case "https":
		ca, url, _ := strings.Cut(target, ":")
		roots, err := readCA(ca)
		return answers(roots, url), err
	}
	return nil, fmt.Errorf("unknown condition %q", c)
}

func listens(network, address string) bool {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func answers(roots *x509.CertPool, url string) func() bool {
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
	}
	return func() bool {
		resp, err := client.Get(url)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
}

func readCA(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", path)
	}
	return roots, nil
}
