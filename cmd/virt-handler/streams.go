package main

import (
	"log/slog"

	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/handler/controller"
	"github.com/podvisor/podvisor/handler/stream"
)

// newStreams makes the server of the streams of the node's VMIs, and the annotations of the
// node by which virt-controller knows it.
func newStreams(cfg *rest.Config, c *controller.Controller, cert stream.Certificate, node, namespace string, log *slog.Logger) (*stream.Server, map[string]string, error) {
	reviews, err := authenticationv1.NewForConfig(cfg)
	if err != nil {
		return nil, nil, err
	}
	r := stream.NewReviews(stream.ReviewsConfig{
		Client: reviews.TokenReviews(), Node: node, User: "system:serviceaccount:" + namespace + ":virt-controller",
	})
	s := stream.NewServer(stream.ServerConfig{Guests: c, Admit: r.Admit, Peer: c.AdmitPeer, Certificate: cert, Logger: log})
	address, err := stream.MigrationAddress()
	if err != nil { // migrations that need it say so; the VMIs of the node are served
		log.Warn("find the address for migrations", "err", err)
	}
	return s, map[string]string{stream.CertificateAnnotation: cert.Hash, stream.MigrationAddressAnnotation: address}, nil
}
