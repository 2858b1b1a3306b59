package stream_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/podvisor/podvisor/handler/stream"
)

func ExampleNewCertificate() {
	c, err := stream.NewCertificate(time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	kind, _, _ := strings.Cut(c.Hash, ":")
	fmt.Println("the annotation", stream.CertificateAnnotation, "has a hash:", kind)
	fmt.Println("tokens are for", stream.Audience("n1"))
	// Output:
	// the annotation podvisor.io/stream-certificate has a hash: sha256
	// tokens are for handler.podvisor.io/n1
}
