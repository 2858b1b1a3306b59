package certificate

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Policy says what is made and how long it lives.
type Policy struct {
	// Name is the common name of the authority. Required.
	Name string
	// Hosts are the DNS names of the server. Required.
	Hosts []string
	// AuthorityLife is how long an authority is trusted. 0: 7 days.
	AuthorityLife time.Duration
	// Life is how long a certificate is valid, which should be at most half of
	// AuthorityLife. 0: a day.
	Life time.Duration
	// Spread is how long clients may take to learn of a new authority. 0: a
	// minute.
	Spread time.Duration
}

// skew is how far the clocks of server and client may differ.
const skew = 5 * time.Minute

func (p Policy) complete() Policy {
	if p.AuthorityLife == 0 {
		p.AuthorityLife = 7 * 24 * time.Hour
	}
	if p.Life == 0 {
		p.Life = 24 * time.Hour
	}
	if p.Spread == 0 {
		p.Spread = time.Minute
	}
	return p
}

// Renew returns the bundle as it should be at the time, and how long it can stay
// so. What is not due is kept; if nothing is due, the result equals b. A bundle
// that is damaged is made anew.
func (p Policy) Renew(b Bundle, now time.Time) (Bundle, time.Duration, error) {
	p = p.complete()
	all := b.authorities(now)
	switch {
	case len(all) == 0:
		return p.begin(now)
	case left(all[0].cert, now) <= p.AuthorityLife/3:
		return p.follow(b, all, now)
	}
	b.Authorities = encodeCertificates(all...)
	serving := b.serving()
	if serving == nil || !p.holds(serving, all, now) || p.handOver(serving, all, now) {
		return p.issue(b, all, now)
	}
	return b, p.next(serving, all, now), nil
}

// begin makes the first authority and the first certificate.
func (p Policy) begin(now time.Time) (Bundle, time.Duration, error) {
	return p.withNew(Bundle{}, nil, now)
}

// follow makes the next authority. The certificate is signed once more by the
// one before, so that it lasts until the next one is trusted everywhere.
func (p Policy) follow(b Bundle, all []pair, now time.Time) (Bundle, time.Duration, error) {
	b, _, err := p.issue(b, all, now)
	if err != nil {
		return Bundle{}, 0, err
	}
	return p.withNew(b, all, now)
}

func (p Policy) withNew(b Bundle, all []pair, now time.Time) (Bundle, time.Duration, error) {
	first, err := p.authority(now)
	if err != nil {
		return Bundle{}, 0, fmt.Errorf("make an authority: %w", err)
	}
	all = append([]pair{first}, all...)
	b.Authorities = encodeCertificates(all...)
	if b.AuthorityKey, err = encodeKey(first.key); err != nil {
		return Bundle{}, 0, err
	}
	if serving := b.serving(); serving != nil {
		return b, p.next(serving, all, now), nil
	}
	return p.issue(b, all, now)
}

// issue signs a certificate by the newest authority.
func (p Policy) issue(b Bundle, all []pair, now time.Time) (Bundle, time.Duration, error) {
	cert, err := p.certificate(all[0], now)
	if err != nil {
		return Bundle{}, 0, fmt.Errorf("issue a certificate: %w", err)
	}
	b.Certificate = encodeCertificates(cert)
	if b.Key, err = encodeKey(cert.key); err != nil {
		return Bundle{}, 0, err
	}
	return b, p.next(cert.cert, all, now), nil
}

// holds says that the certificate is trusted, for all of the hosts, and not soon
// to expire.
func (p Policy) holds(c *x509.Certificate, all []pair, now time.Time) bool {
	return left(c, now) > p.Life/3 && slices.Equal(c.DNSNames, p.Hosts) && signer(c, all) >= 0
}

// handOver says that it is time to sign by the newest authority: that the
// certificate is by another, and every client has read the newest.
func (p Policy) handOver(c *x509.Certificate, all []pair, now time.Time) bool {
	return signer(c, all) > 0 && p.settles(all[0], now) <= 0
}

// settles is how long it takes until every client has read the authority.
func (p Policy) settles(a pair, now time.Time) time.Duration {
	return a.cert.NotAfter.Add(p.Spread - p.AuthorityLife).Sub(now)
}

// signer is the index of the authority that signed the certificate, or -1.
func signer(c *x509.Certificate, all []pair) int {
	return slices.IndexFunc(all, func(a pair) bool { return c.CheckSignatureFrom(a.cert) == nil })
}

// next is how long nothing is due.
func (p Policy) next(c *x509.Certificate, all []pair, now time.Time) time.Duration {
	due := min(left(c, now)-p.Life/3, left(all[0].cert, now)-p.AuthorityLife/3)
	if signer(c, all) > 0 {
		due = min(due, p.settles(all[0], now))
	}
	return max(due, time.Second)
}

func left(c *x509.Certificate, now time.Time) time.Duration { return c.NotAfter.Sub(now) }

func (p Policy) authority(now time.Time) (pair, error) {
	// The name carries the time: clients find an authority by its name.
	t := template(fmt.Sprintf("%s@%d", p.Name, now.UnixNano()), now, p.AuthorityLife)
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage = x509.KeyUsageCertSign
	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	return sign(t, pair{t, key}, key)
}

func (p Policy) certificate(by pair, now time.Time) (pair, error) {
	t := template(p.Hosts[0], now, min(p.Life, left(by.cert, now)))
	t.DNSNames = p.Hosts
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	return sign(t, by, key)
}

func template(name string, now time.Time, life time.Duration) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(life),
	}
}

// serial is a random positive number of 127 bits.
func serial() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[0] &= 0x7f
	return b
}

func sign(t *x509.Certificate, by pair, key *ecdsa.PrivateKey) (pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, by.cert, key.Public(), by.key)
	if err != nil {
		return pair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return pair{cert, key}, err
}
