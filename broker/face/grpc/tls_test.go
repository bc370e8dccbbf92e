package grpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	grpcface "github.com/droverhq/drover/broker/face/grpc"
	"github.com/droverhq/drover/broker/face/grpc/client"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// Guards TLS on TCP: with the right certificate a token gets in, and without TLS nobody does.
func TestTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	b := broker.New(broker.Options{Sources: []broker.Source{brokertest.New("cdp", []string{"chromium"})}})
	s := grpcface.New(grpcface.Options{Broker: b, Tokens: tokens{}, TLS: &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.ServeTCP(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Close(ctx)
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.Close(ctx)
	})
	list := func(o client.Options) error {
		c, err := client.Dial(l.Addr().String(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = client.Call[*browserv1.ListSessionsResponse](t.Context(), c, &browserv1.ListSessionsRequest{})
		return err
	}
	if err := list(client.Options{Token: "secret-ann", TLS: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}}); err != nil {
		t.Errorf("with the certificate: %v", err)
	}
	if err := list(client.Options{Token: "secret-ann", TLS: &tls.Config{MinVersion: tls.VersionTLS12}}); err == nil {
		t.Error("an unknown certificate is accepted")
	}
	if err := list(client.Options{Token: "secret-ann"}); err == nil {
		t.Error("it answers without TLS")
	}
}
