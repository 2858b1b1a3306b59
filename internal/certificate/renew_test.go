package certificate

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	policy = Policy{Name: "test", Hosts: []string{"web.ns.svc"}, AuthorityLife: 12 * time.Hour, Life: 2 * time.Hour, Spread: 10 * time.Minute}
	start  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func renew(t *testing.T, b Bundle, now time.Time) (Bundle, time.Duration) {
	t.Helper()
	b, after, err := policy.Renew(b, now)
	require.NoError(t, err)
	require.Positive(t, after)
	return b, after
}

// trusts says that a client which trusts the authorities accepts the server's
// certificate.
func trusts(authorities []byte, b Bundle, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	_, err := b.serving().Verify(x509.VerifyOptions{Roots: roots, DNSName: policy.Hosts[0], CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

func TestTheFirstBundleIsTrustedAndStays(t *testing.T) {
	t.Parallel()
	b, after := renew(t, Bundle{}, start)
	require.NoError(t, trusts(b.Authorities, b, start))
	_, err := b.KeyPair()
	require.NoError(t, err)
	for at := time.Duration(0); at < after; at += 5 * time.Minute {
		same, _ := renew(t, b, start.Add(at))
		require.True(t, b.Equal(same), at)
	}
	later, _ := renew(t, b, start.Add(after))
	require.False(t, b.Equal(later))
}

// A client learns of the authorities only some time after they were made, and a
// server goes on with its certificate for as long. Over ten lives of an
// authority there is never a moment at which one does not trust the other.
func TestEveryClientTrustsEveryServer(t *testing.T) {
	t.Parallel()
	const lag = 9 * time.Minute // less than Policy.Spread
	type change struct {
		at time.Time
		b  Bundle
	}
	b, after := renew(t, Bundle{}, start)
	history := []change{{start, b}}
	known := func(now time.Time) []change {
		i := slices.IndexFunc(history, func(c change) bool { return c.at.After(now.Add(-lag)) })
		if i < 0 {
			return history[len(history)-1:]
		}
		return history[max(0, i-1):]
	}
	authorities := map[string]bool{}
	end := start.Add(10 * policy.AuthorityLife)
	for now := start.Add(after); now.Before(end); now = now.Add(after) {
		b, after = renew(t, b, now)
		history = append(history, change{now, b})
		authorities[string(b.AuthorityKey)] = true
		for _, client := range known(now) {
			for _, server := range known(now) {
				require.NoError(t, trusts(client.b.Authorities, server.b, now))
			}
		}
		require.LessOrEqual(t, len(parseCertificates(b.Authorities)), 2)
	}
	require.Greater(t, len(authorities), 10)
}

func TestOneAuthoritySignsManyCertificates(t *testing.T) {
	t.Parallel()
	b, after := renew(t, Bundle{}, start)
	next, _ := renew(t, b, start.Add(after))
	require.Equal(t, b.Authorities, next.Authorities)
	require.Equal(t, b.AuthorityKey, next.AuthorityKey)
	require.NotEqual(t, b.Certificate, next.Certificate)
}

func TestWhatIsDamagedIsMadeAnew(t *testing.T) {
	t.Parallel()
	good, _ := renew(t, Bundle{}, start)
	other, _ := renew(t, Bundle{}, start)
	for name, damage := range map[string]func(*Bundle){
		"no authority":                  func(b *Bundle) { b.Authorities = nil },
		"an authority that is no PEM":   func(b *Bundle) { b.Authorities = []byte("x") },
		"a key of another authority":    func(b *Bundle) { b.AuthorityKey = other.AuthorityKey },
		"no certificate":                func(b *Bundle) { b.Certificate = nil },
		"a key of another certificate":  func(b *Bundle) { b.Key = other.Key },
		"a certificate of another":      func(b *Bundle) { b.Certificate, b.Key = other.Certificate, other.Key },
		"an authority that is none":     func(b *Bundle) { b.Authorities, b.AuthorityKey = b.Certificate, b.Key },
		"a key that is a certificate":   func(b *Bundle) { b.Key = b.Certificate },
		"an authority of another":       func(b *Bundle) { b.Authorities = other.Authorities },
		"everything from the year 2020": func(b *Bundle) { *b, _ = renew(t, Bundle{}, start.AddDate(-6, 0, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := good
			damage(&b)
			b, _ = renew(t, b, start)
			require.NoError(t, trusts(b.Authorities, b, start))
			_, err := b.KeyPair()
			require.NoError(t, err)
			same, _ := renew(t, b, start)
			require.True(t, b.Equal(same))
		})
	}
}

func TestOtherHostsNeedAnotherCertificate(t *testing.T) {
	t.Parallel()
	b, _ := renew(t, Bundle{}, start)
	p := policy
	p.Hosts = []string{"other.ns.svc"}
	next, _, err := p.Renew(b, start)
	require.NoError(t, err)
	require.Equal(t, b.Authorities, next.Authorities)
	require.Equal(t, []string{"other.ns.svc"}, next.serving().DNSNames)
}

func FuzzRenew(f *testing.F) {
	b, _, err := policy.Renew(Bundle{}, start)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b.Authorities, b.AuthorityKey, b.Certificate, b.Key)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, authorities, authorityKey, cert, key []byte) {
		b, _, err := policy.Renew(Bundle{authorities, authorityKey, cert, key}, start)
		if err != nil || trusts(b.Authorities, b, start) != nil {
			t.Fatalf("%v: %+v", err, b)
		}
	})
}
