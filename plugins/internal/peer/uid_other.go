//go:build !linux

package peer

import (
	"errors"
	"net"
)

// uidOf cannot tell on this system; use mTLS.
func uidOf(*net.UnixConn) (int, error) { return 0, errors.ErrUnsupported }
