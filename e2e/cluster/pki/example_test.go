package pki_test

import (
	"crypto/tls"
	"fmt"

	"github.com/podvisor/podvisor/e2e/cluster/pki"
)

func Example() {
	ca, err := pki.New("my-ca")
	if err != nil {
		panic(err)
	}
	pair, err := ca.Issue(pki.Subject{Name: "admin", Groups: []string{"system:masters"}})
	if err != nil {
		panic(err)
	}
	loaded, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		panic(err)
	}
	fmt.Println(loaded.Leaf.Subject, "signed by", loaded.Leaf.Issuer)
	// Output: CN=admin,O=system:masters signed by CN=my-ca
}
