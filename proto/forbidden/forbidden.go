// Package forbidden names the places that no caller may open, whatever a config says: where clouds serve the credentials of
// the machine. The policy refuses them to who asks for them, and browsers find no way there when a page leads to them.
package forbidden

import (
	"net/netip"
	"slices"
)

// Hosts are names of metadata services, in lower case.
var Hosts = []string{
	"metadata.google.internal", "metadata.goog", "metadata", "instance-data", "instance-data.ec2.internal",
	"metadata.azure.internal", "metadata.tencentyun.com",
}

// Addrs are their addresses.
var Addrs = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"),
	netip.MustParseAddr("169.254.170.2"),
	netip.MustParseAddr("169.254.169.253"),
	netip.MustParseAddr("169.254.0.23"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
}

// Host says whether a name, in lower case, or an address without brackets is forbidden.
func Host(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return Addr(a)
	}
	return slices.Contains(Hosts, host)
}

// Addr says whether an address is forbidden, or carries one that is.
func Addr(a netip.Addr) bool {
	return slices.ContainsFunc(Carried(a), func(a netip.Addr) bool { return slices.Contains(Addrs, a) })
}

// Carried gives every address that may be meant by one: itself, without a zone, and the IPv4 addresses that an IPv6 address
// may carry: mapped and compatible (RFC 4291), translated (RFC 2765), by NAT64 with the well-known prefix and with the
// local one at every length (RFC 6052, RFC 8215), through 6to4 (RFC 3056), and as a client of Teredo (RFC 4380).
func Carried(a netip.Addr) []netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return []netip.Addr{a}
	}
	b := a.As16()
	v4 := func(i ...int) netip.Addr { return netip.AddrFrom4([4]byte{b[i[0]], b[i[1]], b[i[2]], b[i[3]]}) }
	begins := func(prefix ...byte) bool { return slices.Equal(b[:len(prefix)], prefix) }
	out := []netip.Addr{a}
	switch {
	case begins(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0):
		if low := v4(12, 13, 14, 15); low != netip.AddrFrom4([4]byte{}) && low != netip.AddrFrom4([4]byte{0, 0, 0, 1}) { // :: and ::1 are themselves
			out = append(out, low)
		}
	case begins(0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0), begins(0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0):
		out = append(out, v4(12, 13, 14, 15))
	case begins(0, 0x64, 0xff, 0x9b, 0, 1): // octet 8 stays zero
		out = append(out, v4(12, 13, 14, 15), v4(6, 7, 9, 10), v4(7, 9, 10, 11), v4(9, 10, 11, 12))
	case begins(0x20, 0x02):
		out = append(out, v4(2, 3, 4, 5))
	case begins(0x20, 0x01, 0, 0):
		out = append(out, netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	return out
}
