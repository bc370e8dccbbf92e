// Package peer lets only processes of the same user through a unix socket. It stands in for mTLS where a provider's author
// has no X.509 library; the socket's folder is 0700 besides.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc/credentials"
)

// SameUser gives transport credentials that ask the kernel who is at the other end of a unix socket and refuse everyone
// but this process's own user. The bytes are not encrypted: they do not leave the machine.
func SameUser() credentials.TransportCredentials { return sameUser{} }

type sameUser struct{}

type authInfo struct{ credentials.CommonAuthInfo }

// AuthType names the check.
func (authInfo) AuthType() string { return "peer-uid" }

// ClientHandshake checks the process that listens.
func (s sameUser) ClientHandshake(_ context.Context, _ string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return s.check(c)
}

// ServerHandshake checks the process that called.
func (s sameUser) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return s.check(c)
}

// Info tells gRPC what this is.
func (sameUser) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "peer-uid"}
}

// Clone gives the same, for there is nothing to copy.
func (s sameUser) Clone() credentials.TransportCredentials { return s }

// OverrideServerName does nothing: there are no names.
func (sameUser) OverrideServerName(string) error { return nil }

func (sameUser) check(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("peer: only unix sockets are allowed without mTLS")
	}
	uid, err := uidOf(u)
	if err != nil {
		return nil, nil, fmt.Errorf("peer: who is at the other end: %w", err)
	}
	if uid != os.Geteuid() {
		return nil, nil, fmt.Errorf("peer: user %d is refused", uid)
	}
	return c, authInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}
