package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

// Bundle is a server's certificate with all that belongs to it, in PEM. The zero
// value has nothing.
type Bundle struct {
	// Authorities are the certificates that clients are to trust, the newest
	// first.
	Authorities []byte
	// AuthorityKey is the key of the newest authority.
	AuthorityKey []byte
	// Certificate and Key are the server's.
	Certificate, Key []byte
}

// KeyPair is the server's certificate and key as a TLS server wants them.
func (b Bundle) KeyPair() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(b.Certificate, b.Key)
	if err != nil {
		return nil, fmt.Errorf("read the serving certificate: %w", err)
	}
	return &pair, nil
}

// Equal says that the bundles are the same.
func (b Bundle) Equal(o Bundle) bool {
	return bytes.Equal(b.Authorities, o.Authorities) && bytes.Equal(b.AuthorityKey, o.AuthorityKey) &&
		bytes.Equal(b.Certificate, o.Certificate) && bytes.Equal(b.Key, o.Key)
}

// pair is a certificate with its key. The key is nil if it is not known.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// authorities are the bundle's authorities that are valid at the time, the
// newest first and with its key. There is none if the key is missing or belongs
// to another.
func (b Bundle) authorities(now time.Time) []pair {
	var all []pair
	for _, c := range parseCertificates(b.Authorities) {
		if c.IsCA && now.Before(c.NotAfter) {
			all = append(all, pair{cert: c})
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int { return b.cert.NotAfter.Compare(a.cert.NotAfter) })
	if len(all) == 0 {
		return nil
	}
	all[0].key = parseKey(b.AuthorityKey)
	if !all[0].matches() {
		return nil
	}
	return all
}

// serving is the bundle's certificate, or nil if it is not whole.
func (b Bundle) serving() *x509.Certificate {
	all := parseCertificates(b.Certificate)
	if len(all) == 0 || !(pair{all[0], parseKey(b.Key)}).matches() {
		return nil
	}
	return all[0]
}

func (p pair) matches() bool {
	return p.key != nil && p.key.PublicKey.Equal(p.cert.PublicKey)
}

// parseCertificates reads the certificates in PEM and passes over all that is
// none.
func parseCertificates(data []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return all
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, c)
		}
	}
}

// parseKey reads a key, or returns nil if it is none of ours.
func parseKey(data []byte) *ecdsa.PrivateKey {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil
	}
	own, _ := key.(*ecdsa.PrivateKey)
	return own
}

func encodeCertificates(all ...pair) []byte {
	var out []byte
	for _, p := range all {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})...)
	}
	return out
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }
