package stream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// lifetime is that of a certificate. It is known by its hash, and a new one is made with
// each start.
const lifetime = 10 * 365 * 24 * time.Hour

// Certificate is the certificate of a handler with its key, which leaves the process
// never.
type Certificate struct {
	tls tls.Certificate
	// Hash is what the [CertificateAnnotation] of the node says.
	Hash string
}

// NewCertificate makes a key and a certificate that the key signs itself.
func NewCertificate(now time.Time) (Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, fmt.Errorf("make the key of the stream server: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "virt-handler"},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return Certificate{}, fmt.Errorf("make the certificate of the stream server: %w", err)
	}
	return Certificate{tls: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, Hash: hash(der)}, nil
}

// hash is the hash of a certificate in DER.
func hash(der []byte) string {
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// server is the configuration of the handler's side.
func (c Certificate) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.tls}, NextProtos: []string{"http/1.1"},
		SessionTicketsDisabled: true, // no client would use one again
	}
}

// errCertificate is the error of a peer that has not the certificate of the handler.
var errCertificate = errors.New("it has another certificate than its node says")

// pinned is the configuration of the other side: the peer has the certificate with the
// hash, and proves that it has its key.
func pinned(want string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{"http/1.1"},
		InsecureSkipVerify: true, //nolint:gosec // no name and no authority: VerifyConnection compares the certificate itself
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || hash(s.PeerCertificates[0].Raw) != want {
				return errCertificate
			}
			return nil
		},
	}
}
