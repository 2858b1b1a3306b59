package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIssue(t *testing.T) {
	t.Parallel()
	ca, err := New("ca")
	require.NoError(t, err)
	pair, err := ca.Issue(Subject{
		Name: "system:node:n1", Groups: []string{"system:nodes"},
		DNS: []string{"n1"}, IPs: []netip.Addr{netip.MustParseAddr("10.200.0.11")},
	})
	require.NoError(t, err)
	loaded, err := tls.X509KeyPair(pair.Cert, pair.Key)
	require.NoError(t, err)
	cert := loaded.Leaf
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca.Cert))

	t.Run("the authority's certificate verifies it, for every name, for clients and servers", func(t *testing.T) {
		for _, host := range []string{"n1", "10.200.0.11"} {
			for _, usage := range cert.ExtKeyUsage {
				_, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}})
				require.NoError(t, err, host)
			}
		}
		require.Len(t, cert.ExtKeyUsage, 2)
	})
	t.Run("it carries the user and the groups", func(t *testing.T) {
		require.Equal(t, "system:node:n1", cert.Subject.CommonName)
		require.Equal(t, []string{"system:nodes"}, cert.Subject.Organization)
	})
	t.Run("it is valid now and for years, and signs nothing", func(t *testing.T) {
		require.True(t, cert.NotBefore.Before(time.Now()))
		require.True(t, cert.NotAfter.After(time.Now().AddDate(9, 0, 0)))
		require.False(t, cert.IsCA)
	})
	t.Run("another authority of the same name does not verify it", func(t *testing.T) {
		other, err := New("ca")
		require.NoError(t, err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(other.Cert)
		_, err = cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "n1"})
		require.Error(t, err)
	})
}

func TestSigningKey(t *testing.T) {
	t.Parallel()
	private, public, err := SigningKey()
	require.NoError(t, err)
	block, _ := pem.Decode(private)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	require.NoError(t, err)
	block, _ = pem.Decode(public)
	pub, err := x509.ParsePKIXPublicKey(block.Bytes)
	require.NoError(t, err)
	require.True(t, key.PublicKey.Equal(pub.(*ecdsa.PublicKey)))
}
